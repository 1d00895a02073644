export class CallRefused extends Error {
  override readonly name = "CallRefused";
  readonly httpStatus: number;
  readonly code: string;

  constructor(message: string, httpStatus = 400, code = "parameter_invalid") {
    super(message);
    this.httpStatus = httpStatus;
    this.code = code;
  }
}
