// scripts/simulation/audit/violation.ts
import { isDeepStrictEqual } from "node:util";
var Violation = class extends Error {
  name = "Violation";
};
function must(holds, complaint) {
  if (!holds) throw new Violation(typeof complaint === "string" ? complaint : complaint());
}
function mustEqual(actual, expected, complaint) {
  if (Object.is(actual, expected)) return;
  const [is, should] = [said(actual), said(expected)];
  if (is !== should) throw new Violation(`${complaint}: ${is} instead of ${should}`);
}
function mustBeSame(actual, expected, complaint) {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Violation(`${complaint}: ${firstDifference(actual, expected)}`);
}
function firstDifference(actual, expected, path = "") {
  const [is, should] = [partsOf(actual), partsOf(expected)];
  if (is !== null && should !== null) {
    for (const key of /* @__PURE__ */ new Set([...is.keys(), ...should.keys()])) {
      if (isDeepStrictEqual(is.get(key), should.get(key)) && is.has(key) === should.has(key)) continue;
      return firstDifference(is.get(key), should.get(key), `${path}/${String(key)}`);
    }
  }
  return `${path} is ${said(actual)} instead of ${said(expected)}`;
}
function partsOf(value) {
  if (value instanceof Map) return value;
  return typeof value === "object" && value !== null ? new Map(Object.entries(value)) : null;
}
var said = (value) => typeof value === "object" && value !== null && !Array.isArray(value) ? JSON.stringify(Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))) : JSON.stringify(value ?? null);

// scripts/simulation/audit/event-model.ts
var EventModel = class {
  #happened = [];
  /** Which of the changes each event's id belongs to. */
  #ids = /* @__PURE__ */ new Map();
  #written = /* @__PURE__ */ new Map();
  happened(type, at) {
    this.#happened.push({ type, at });
  }
  /** What is still to be published happened, each once, and all that is not there any more is in the journal. */
  expectOutbox(outbox, of) {
    const happened = this.#happened.filter(({ type }) => of.includes(type));
    const first = happened.length - outbox.length;
    must(first >= 0, "an event for a change that did not happen");
    for (const [index, { at, id, type }] of outbox.entries()) {
      mustEqual({ at, type }, happened[first + index], "an event against what happened");
      const place = this.#happened.indexOf(happened[first + index] ?? { type, at });
      mustEqual(this.#ids.get(id) ?? place, place, "an event's id was given twice: its change");
      this.#ids.set(id, place);
    }
    const published = [...this.#written.values()].filter(({ type }) => of.includes(type)).length;
    must(first <= published, "an event left the outbox and is not in the journal");
  }
  write(events) {
    for (const event of events) {
      mustEqual(event, this.#written.get(event.id) ?? event, "an event was published as two things");
      this.#written.set(event.id, event);
    }
  }
  /** With nothing under way, all that happened is in the journal, and nothing else is. */
  expectComplete() {
    const written = [...this.#written.values()].map(({ at, type }) => `${type} ${at}`);
    const happened = this.#happened.map(({ at, type }) => `${type} ${at}`);
    mustEqual(written.toSorted(), happened.toSorted(), "the journal against what happened");
  }
};

// scripts/simulation/audit/account-model.ts
var DAY = 24 * 60 * 60 * 1e3;
var HOUR = 60 * 60 * 1e3;
var dayOf = (at) => new Date(at).toISOString().split("T")[0] ?? "";
var midnightAfter = (at) => Date.parse(`${dayOf(at + DAY)}T00:00:00.000Z`);
var orZero = (cents) => cents < 0 ? 0 : cents;
var isMoney = (status) => status === "pending" || status === "approved";
var CHANGES = {
  pending: ["pending", "approved", "denied", "failed", "expired", "reversed"],
  approved: ["approved", "reversed"]
};
var mayFollow = (before2, after2) => before2 === after2 || CHANGES[before2]?.includes(after2) === true;
var AccountModel = class {
  agentId;
  teamId;
  journal = new EventModel();
  byKey = /* @__PURE__ */ new Map();
  payments = [];
  name;
  policy;
  version = 1;
  status = "active";
  /** The key that may pay, and the revision of the agent's actor that name, key and end are from. */
  keyId;
  followedRevision = 0;
  /** How often it was paused or resumed. */
  turns = 0;
  /** The highest permit and the highest fence that the ledger gave. */
  #permit = 0;
  #fence = 0;
  spentCents = 0;
  reservedCents = 0;
  /** The newest day, and the newest time, that anything was counted on. */
  #newestDay = "";
  #newestCountedAt = 0;
  constructor({ agentId, keyId, name, policy: policy2, teamId }) {
    this.agentId = agentId;
    this.teamId = teamId;
    this.name = name;
    this.policy = policy2;
    this.keyId = keyId;
  }
  /** A permit that was given before a fence is below it, and none given after. */
  permitted(permit) {
    must(permit >= this.#permit && permit > this.#fence, "a permit is below an earlier one, or a fence");
    this.#permit = permit;
  }
  fenced(fence) {
    must(fence >= this.#fence && fence > this.#permit, "a fence is below an earlier one, or a permit");
    this.#fence = fence;
  }
  add(payment) {
    this.byKey.set(payment.keyHash, payment);
    this.payments.push(payment);
    this.#count(payment, 1);
    if (!payment.isCounted) return;
    this.#newestCountedAt = payment.countedAt;
    this.#newestDay = payment.day;
  }
  /** A payment's money moves with its status, and with nothing else; whatever was held or spent comes to an end once. */
  change(payment, change, now) {
    const { status } = payment;
    must(change.status === void 0 || mayFollow(status, change.status), `${payment.id} changed twice`);
    const wasMoney = isMoney(status);
    this.#count(payment, -1);
    Object.assign(payment, change, { revision: payment.revision + 1 });
    this.#count(payment, 1);
    if (status !== payment.status && (wasMoney || isMoney(payment.status))) this.counted(now);
  }
  #count({ amountCents, status }, sign) {
    if (status === "pending") this.reservedCents += sign * amountCents;
    if (status === "approved") this.spentCents += sign * amountCents;
  }
  /** Something was counted now: what comes later is not counted on a day before that. */
  counted(now) {
    this.#newestDay = this.dayOf(now);
  }
  /** Where the clock goes back over midnight, days do not. */
  dayOf(now) {
    const today = dayOf(now);
    return this.#newestDay > today ? this.#newestDay : today;
  }
  countedAt(now) {
    return Math.max(now, this.#newestCountedAt);
  }
  /** Who waits for a person. */
  held() {
    return this.payments.filter(isHeld);
  }
  /** Something is left to be done for them. */
  open() {
    return this.payments.filter((one) => !isClosed(one));
  }
  /** Decided and not over, and no person is to be asked. */
  inFlight() {
    return this.payments.filter((one) => one.status === "pending" && !one.isOver && !isHeld(one));
  }
  /** What its key has asked for, and was not sent, is not to be sent any more. */
  withdraw() {
    for (const payment of this.inFlight()) payment.isWithdrawn = true;
  }
  get usedCents() {
    return this.spentCents + this.reservedCents;
  }
  needsPerson(amountCents) {
    const threshold = this.policy.autoApprovalThresholdCents;
    return threshold !== null && (threshold === 0 || amountCents > threshold);
  }
  /** What the agent's life and its own limits say to an amount, `own` not counted; the first that fails. */
  verdict(amountCents, now, own = null) {
    if (this.status !== "active") {
      return { code: this.status === "paused" ? "AGENT_PAUSED" : "AGENT_ARCHIVED", details: null };
    }
    return this.#amounts(amountCents, now, own) ?? this.#counts(now, own);
  }
  /** What the agent's budget shows. */
  usage(now) {
    const today = this.dayOf(now);
    return {
      todayCents: this.#spentOn(today, null),
      todayCount: this.#countOn(today, null),
      lastHourCount: this.#ofHour(now, null).length
    };
  }
  #amounts(amountCents, now, own) {
    const { budgetCents, dailySpendLimitCents: daily, perTransactionLimitCents: each } = this.policy;
    if (each !== null && amountCents > each) {
      const details2 = { limit: each, remaining: each, resetsAt: null };
      return { code: "PER_TRANSACTION_LIMIT_EXCEEDED", details: details2 };
    }
    const left = budgetCents - this.usedCents + (own?.amountCents ?? 0);
    if (amountCents > left) {
      const details2 = { limit: budgetCents, remaining: orZero(left), resetsAt: null };
      return { code: "BUDGET_EXCEEDED", details: details2 };
    }
    if (daily === null) return null;
    const leftToday = daily - this.#spentOn(this.dayOf(now), own);
    if (amountCents <= leftToday) return null;
    const details = { limit: daily, remaining: orZero(leftToday), resetsAt: this.#dayEndsAt(now) };
    return { code: "DAILY_SPEND_LIMIT_EXCEEDED", details };
  }
  #counts(now, own) {
    const { dailyVelocityLimit: daily, hourlyVelocityLimit: hourly } = this.policy;
    if (hourly !== null && this.#ofHour(now, own).length >= hourly) {
      const last = hourly === 0 ? void 0 : this.#ofHour(now, null)[hourly - 1];
      const resetsAt = last === void 0 ? null : last + HOUR;
      return { code: "HOURLY_VELOCITY_EXCEEDED", details: { limit: hourly, remaining: 0, resetsAt } };
    }
    if (daily !== null && this.#countOn(this.dayOf(now), own) >= daily) {
      const details = { limit: daily, remaining: 0, resetsAt: this.#dayEndsAt(now) };
      return { code: "DAILY_VELOCITY_EXCEEDED", details };
    }
    return null;
  }
  #dayEndsAt(now) {
    const day = this.dayOf(now);
    return day > dayOf(now) ? midnightAfter(Date.parse(day)) : midnightAfter(now);
  }
  /** Which rules flag a payment that is not denied, and whether its threshold does. */
  flags(amountCents, fingerprint, rules, now) {
    const flags = /* @__PURE__ */ new Set();
    if (this.needsPerson(amountCents)) flags.add("agent_threshold");
    for (const rule of rules) {
      if (rule.type === "velocity") {
        const since = now - rule.windowSeconds * 1e3;
        const recent = this.payments.filter((one) => one.isCounted && one.countedAt > since);
        if (recent.length >= rule.count) flags.add(rule.type);
      } else if (rule.type === "duplicate") {
        const since = now - rule.windowSeconds * 1e3;
        const isSimilar = (one) => one.fingerprint === fingerprint && one.status !== "denied" && one.createdAt > since;
        if (this.payments.some(isSimilar)) flags.add(rule.type);
      } else flags.add(rule.type);
    }
    return flags;
  }
  #spentOn(day, own) {
    let cents = 0;
    for (const payment of this.payments) {
      if (payment !== own && payment.day === day && isMoney(payment.status)) cents += payment.amountCents;
    }
    return cents;
  }
  #countOn(day, own) {
    return this.payments.filter((one) => one !== own && one.isCounted && one.countedOn === day).length;
  }
  /** When the payments of the hour that ends now were made, newest first. */
  #ofHour(now, own) {
    return this.payments.filter((one) => now - one.countedAt < HOUR && one !== own && one.isCounted).map(({ countedAt }) => countedAt).toSorted((a, b) => b - a);
  }
};
var isHeld = ({ approvedAt, isOver, needsPerson }) => needsPerson && approvedAt === null && !isOver;
var isClosed = ({ confirmedRevision, isOver, revision }) => isOver && confirmedRevision >= revision;

// scripts/simulation/audit/books.ts
var newLevel = () => ({
  capCents: null,
  version: 1,
  rulesVersion: 0,
  spentCents: 0,
  reservedCents: 0
});
var WorldModel = class {
  accounts = /* @__PURE__ */ new Map();
  lives = /* @__PURE__ */ new Map();
  payments = /* @__PURE__ */ new Map();
  #levels = /* @__PURE__ */ new Map();
  #open = /* @__PURE__ */ new Set();
  /** What has happened, how often. */
  tally = /* @__PURE__ */ new Map();
  /** The project (null), or a team. */
  level(teamId) {
    const known2 = this.#levels.get(teamId) ?? newLevel();
    this.#levels.set(teamId, known2);
    return known2;
  }
  payment(transactionId) {
    const payment = this.payments.get(transactionId);
    must(payment !== void 0, `${transactionId} was never decided`);
    return payment;
  }
  account(agentId) {
    const model = this.accounts.get(agentId);
    must(model !== void 0, `no account was opened for ${agentId}`);
    return model;
  }
  life(agentId) {
    const model = this.lives.get(agentId);
    must(model !== void 0, `${agentId} was never created`);
    return model;
  }
  add(model, payment) {
    must(!this.payments.has(payment.id), `${payment.id} was decided twice`);
    this.payments.set(payment.id, payment);
    this.#open.add(payment);
    model.add(payment);
    this.#count(model, payment, 1);
  }
  change(model, payment, change, now) {
    this.#count(model, payment, -1);
    model.change(payment, change, now);
    this.#count(model, payment, 1);
  }
  #count({ teamId }, { amountCents, status }, sign) {
    if (!isMoney(status)) return;
    const field = status === "pending" ? "reservedCents" : "spentCents";
    for (const level of [this.level(null), this.level(teamId)]) level[field] += sign * amountCents;
  }
  openCount() {
    for (const payment of this.#open) if (isClosed(payment)) this.#open.delete(payment);
    return this.#open.size;
  }
  /** What limits of all levels say to an amount, in the order in which they are looked at; `own` not counted. */
  verdict(model, amountCents, now, own = null) {
    return model.verdict(amountCents, now, own) ?? this.#capVerdict(model.teamId, amountCents, own);
  }
  #capVerdict(teamId, amountCents, own) {
    for (const [code, level] of [
      ["TEAM_CAP_EXCEEDED", this.level(teamId)],
      ["PROJECT_CAP_EXCEEDED", this.level(null)]
    ]) {
      const { capCents, reservedCents, spentCents } = level;
      const used = spentCents + reservedCents - (own?.amountCents ?? 0);
      if (capCents === null || used + amountCents <= capCents) continue;
      const remaining = capCents > used ? capCents - used : 0;
      return { code, details: { limit: capCents, remaining, resetsAt: null } };
    }
    return null;
  }
  count(what) {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }
};
function expectDenial(denial, verdict, what) {
  mustEqual(denial?.code ?? null, verdict?.code ?? null, what);
  mustEqual(denial?.details ?? null, verdict?.details ?? null, `${what}, the details`);
}

// scripts/simulation/audit/payment-audit.ts
var STATUS_BY_RAIL = {
  pending: "pending",
  settled: "approved",
  final: "approved",
  failed: "failed",
  reversed: "reversed",
  withheld: "denied"
};
var PaymentAudit = class {
  #books;
  constructor(books) {
    this.#books = books;
  }
  expectConfirmed(command, reply, now) {
    mustEqual(reply.kind, "confirmed", "the answer to a confirmation");
    const payment = this.#books.payment(command.transactionId);
    if (isClosed(payment)) return;
    const model = this.#books.account(payment.agentId);
    if (command.outcome !== null && !payment.isOver && !isHeld(payment))
      this.#settle(model, payment, command.outcome.result, now);
    const confirmed = Math.min(command.revision, payment.revision);
    payment.confirmedRevision = Math.max(payment.confirmedRevision, confirmed);
  }
  #settle(model, payment, outcome, now) {
    if (outcome.status === "pending") {
      if (!payment.isFollowed) this.#books.change(model, payment, { isFollowed: true }, now);
      return;
    }
    const isRefused = outcome.status === "failed" || outcome.status === "withheld";
    if (isRefused && payment.status !== "pending") return;
    const status = STATUS_BY_RAIL[outcome.status];
    const isOver = outcome.status !== "settled" || outcome.final;
    if (status === payment.status && isOver === payment.isOver) return;
    if (outcome.status === "withheld") this.#books.count("withheld");
    if (status !== payment.status) this.#books.count(status);
    this.#books.change(model, payment, { status, isOver, isFollowed: true }, now);
  }
  /** Nothing is sent of a paused agent, and what was withdrawn never is. */
  expectPermission({ agentId, transactionId }, reply) {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    const payment = this.#books.payment(transactionId);
    const model = this.#books.account(agentId);
    if (!model.inFlight().includes(payment))
      return mustEqual(reply.kind, "payment", `permission to send ${transactionId}`);
    must(reply.kind === "permission", `a request for permission was answered ${reply.kind}`);
    const { permission } = reply;
    const kind = payment.isWithdrawn ? "withdraw" : model.status === "paused" ? "wait" : "send";
    mustEqual(permission.kind, kind, `permission to send ${transactionId}`);
    this.#books.count(`permission: ${kind}`);
    if (permission.kind === "send") model.permitted(permission.permit);
    if (permission.kind === "wait") model.fenced(permission.fence);
  }
  expectRead(transactionId, reply) {
    if (reply.kind === "not_open") return this.#expectClosed(transactionId);
    must(reply.kind === "payment" && !reply.changed, `a read was answered ${reply.kind}`);
    const { status } = this.#books.payment(transactionId);
    mustEqual(reply.payment.status, status, `the status of ${transactionId}`);
  }
  expectResolution(command, reply, now) {
    if (reply.kind === "not_open") return this.#expectClosed(command.transactionId);
    const payment = this.#books.payment(command.transactionId);
    const model = this.#books.account(payment.agentId);
    must(reply.kind === "payment", `${command.kind} was answered ${reply.kind}`);
    const held = isHeld(payment);
    const inTime = held && now < payment.expiresAt;
    if (held) this.#resolve(model, payment, command, reply.payment, now);
    mustEqual(reply.changed, inTime, `whether ${command.kind} changed ${payment.id}`);
    mustEqual(reply.payment.status, payment.status, `what ${command.kind} made of ${payment.id}`);
    if (held) expectResolved(reply.payment, command, inTime);
  }
  #resolve(model, payment, command, shown, now) {
    const books = this.#books;
    const isLate = now >= payment.expiresAt;
    books.count(isLate ? `${command.kind} too late` : command.kind);
    const end2 = (status) => books.change(model, payment, { isOver: true, status }, now);
    if (isLate || command.kind === "expire") return end2("expired");
    if (command.kind !== "approve") return end2("denied");
    const verdict = books.verdict(model, payment.amountCents, now, payment);
    expectDenial(shown.denial, verdict, `the approval of ${payment.id}`);
    if (verdict !== null) {
      books.count(`approve: ${verdict.code}`);
      return end2("failed");
    }
    const day = model.dayOf(now);
    mustEqual(shown.day, day, `the day of ${payment.id}`);
    if (day !== payment.day) model.counted(now);
    books.change(model, payment, { approvedAt: now, day }, now);
  }
  /** What was decided stays until it is over, and a process has confirmed that all is done for it. */
  #expectClosed(transactionId) {
    const payment = this.#books.payments.get(transactionId);
    must(payment === void 0 || isClosed(payment), `${transactionId} is not over, and not open`);
  }
};
function expectResolved(payment, { kind }, inTime) {
  const isExecuting = payment.status === "pending";
  const resolution = isExecuting ? "executing" : payment.status;
  mustEqual(payment.approval?.resolution, resolution, "the approval's resolution");
  mustEqual(payment.denial === null, isExecuting, "whether there is no denial");
  const isByPerson = inTime && (kind === "approve" || kind === "deny");
  mustEqual(payment.approval?.resolvedBy !== null, isByPerson, "whether a person resolved it");
}

// scripts/simulation/audit/at-rest.ts
function auditAtRest(ours, books) {
  for (const account of ours.accounts.values()) {
    const life = ours.life(account.agentId);
    auditRecord(account, life, books);
    if (account.status === "closed") auditEnded(account, books);
    else auditAccount(account, life, books);
    account.journal.expectComplete();
  }
  for (const payment of ours.payments.values()) auditPayment(payment, books);
  const held = [...ours.payments.values()].filter(isHeld).map(({ id }) => id);
  mustEqual([...books.pendingApprovals].toSorted(), held.toSorted(), "the approvals that are pending");
  for (const transactionId of books.rail.keys())
    must(ours.payments.has(transactionId), `the rail was paid for ${transactionId}, which was never decided`);
  for (const [teamId, recorded] of books.recordedCaps) {
    const { capCents, version } = ours.level(teamId);
    mustEqual({ ...recorded }, { capCents, version }, `the recorded cap of ${teamId ?? "the project"}`);
  }
}
function auditAccount(account, life, { accounts, lives, now }) {
  const { agentId } = account;
  const shown = accounts.get(agentId);
  must(shown !== void 0, `the account of ${agentId} is gone`);
  must(lives.has(agentId), `the actor of ${agentId} has ended`);
  mustEqual(life.archivedAt, null, `the account of an archived agent is open: when ${agentId} ended`);
  mustEqual(shown.keyId, life.keys.activeKeyId(), `the key of ${agentId} that may pay`);
  mustEqual(shown.name, life.name, `the name of ${agentId} in the ledger`);
  mustEqual(shown.sequence, account.payments.length, `how many payments ${agentId} has decided`);
  const { lastHourCount, todayCents, todayCount } = shown.view;
  mustEqual({ todayCents, todayCount, lastHourCount }, account.usage(now), `the usage of ${agentId}`);
  const open = shown.open.map(({ payment }) => payment.request.transactionId).toSorted();
  const waiting = account.payments.filter(({ isOver }) => !isOver).map(({ id }) => id);
  mustEqual(open, waiting.toSorted(), `what is open for ever of ${agentId}`);
  mustEqual(shown.events, [], `events of ${agentId} that stay in the outbox for ever`);
}
function auditEnded({ agentId, payments }, { accounts, lives }) {
  const isWaiting2 = payments.some((payment) => !isClosed(payment));
  must(isWaiting2 || !accounts.has(agentId), `the closed account of ${agentId} stays for ever`);
  must(!lives.has(agentId), `the actor of ${agentId} goes on after its end`);
}
function auditRecord(account, model, { records }) {
  const { agentId } = account;
  const record = records.get(agentId);
  must(record !== void 0, `${agentId} has no record`);
  const { account: money, life } = record;
  mustEqual(money.spentCents, account.spentCents, `recorded as spent by ${agentId}`);
  mustEqual(money.reservedCents, account.reservedCents, `recorded as reserved by ${agentId}`);
  mustEqual(money.policyVersion, account.version, `the recorded version of the policy of ${agentId}`);
  mustEqual(money.policy, account.policy, `the recorded policy of ${agentId}`);
  mustEqual(money.status, account.status, `the recorded status of ${agentId}`);
  mustEqual(life.name, model.name, `the recorded name of ${agentId}`);
  mustEqual(life.archivedAt, model.archivedAt, `the recorded end of ${agentId}`);
  mustEqual(life.keyId, model.keys.activeKeyId(), `the recorded key of ${agentId}`);
}
function auditPayment(payment, { paymentRecords, rail }) {
  const { amountCents, id, isCaptured: isCaptured2, isReversed, status } = payment;
  mustEqual(paymentRecords.get(id)?.status, status, `the record of ${id}`);
  mustEqual(rail.get(id) ?? 0, isCaptured2 && !isReversed ? amountCents : 0, `the rail's books for ${id}`);
  if (status === "approved") must(isCaptured2 && !isReversed, `${id} is approved, and the rail has nothing`);
  if (isHeld(payment)) return must(payment.rail === null, `${id} is on hold and was sent`);
  if (payment.rail === null)
    return must(payment.isOver && !isCaptured2, `${id} is ${status}, and was never sent`);
  mustEqual(status, STATUS_BY_RAIL[payment.rail], `${id}, after its rail said ${payment.rail}`);
}

// scripts/simulation/audit/account-audit.ts
var AccountAudit = class {
  #books;
  constructor(books) {
    this.#books = books;
  }
  expectOpen(command, reply, { bounds }) {
    const { accounts } = this.#books;
    const known2 = accounts.has(command.agentId);
    if (reply.kind === "project_full") {
      this.#books.count("project full");
      const mayBeThere = accounts.size;
      return must(!known2 && mayBeThere >= bounds.accounts, "a project that is not full took no agent");
    }
    mustEqual(reply, { kind: "opened", changed: !known2 }, "an account");
    if (known2) return;
    const live = [...accounts.values()].filter(({ status }) => status !== "closed");
    must(live.length < bounds.accounts, "more accounts than there may be");
    accounts.set(command.agentId, new AccountModel(command));
  }
  expectPolicy(command, reply) {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's policy");
    if (command.version !== model.version) {
      this.#books.count("stale policy");
      return mustEqual(reply, { kind: "version_conflict", version: model.version }, "a stale version");
    }
    const before2 = model.policy;
    model.policy = { ...before2, ...command.patch };
    model.version += 1;
    this.#books.count("policy changed");
    must(reply.kind === "policy", `a new policy was answered ${reply.kind}`);
    mustEqual(reply.policyVersion, model.version, "the version of a new policy");
    mustEqual(reply.policy, model.policy, "a new policy");
    mustEqual(reply.before, before2, "the policy before a new one");
  }
  expectStatus(command, reply, now) {
    const model = this.#books.account(command.agentId);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's status");
    const status = command.kind === "pause" ? "paused" : "active";
    const changed = model.status !== status;
    must(reply.kind === "account_status", `a change of status was answered ${reply.kind}`);
    mustEqual([reply.status, reply.changed], [status, changed], "a change of status");
    const inFlight = status === "active" ? [] : model.inFlight().map(({ id }) => id);
    const fenced = reply.fence === null ? [] : Object.values(reply.fence.payments).flat();
    mustEqual(inOrder(fenced), inOrder(inFlight), "what a pause fences");
    if (reply.fence !== null) model.fenced(reply.fence.fence);
    if (!changed) return;
    model.status = status;
    model.turns += 1;
    if (status === "active") this.#books.life(model.agentId).pausedAtSequence = null;
    if (status === "paused" && model.keyId === null) model.withdraw();
    model.journal.happened(status === "paused" ? "agent.paused" : "agent.resumed", now);
    this.#books.count(status === "paused" ? "paused" : "resumed");
  }
  expectFollowed(command, reply, now) {
    const model = this.#books.account(command.agentId);
    must(reply.kind === "followed", `what is to be followed was answered ${reply.kind}`);
    if (model.status === "closed" || command.revision <= model.followedRevision)
      return mustEqual(reply.ended, [], "what an old end has ended");
    model.followedRevision = command.revision;
    model.name = command.name;
    if (!command.isArchived) {
      model.keyId = command.keyId;
      if (command.keyId === null && model.status === "paused") model.withdraw();
      return mustEqual(reply.ended, [], "what is ended of an agent that lives");
    }
    const held = model.held();
    mustEqual([...reply.ended].toSorted(), held.map(({ id }) => id).toSorted(), "what closing has ended");
    for (const payment of held) {
      const status = now >= payment.expiresAt ? "expired" : "denied";
      this.#books.change(model, payment, { status, isOver: true }, now);
    }
    if (model.status === "paused") model.withdraw();
    model.status = "closed";
    model.keyId = null;
    this.#books.count(held.length > 0 ? "closed with payments on hold" : "closed");
  }
  /** Whole, or not at all. */
  expectReplaced(command, reply) {
    const own = command.kind === "replace_team" ? command.teamId : null;
    const level = this.#books.level(own);
    if (command.version !== level.version) {
      this.#books.count("stale budget");
      return mustEqual(reply, { kind: "version_conflict", version: level.version }, "a stale budget");
    }
    must(reply.kind === "replaced", `a replacement was answered ${reply.kind}`);
    this.#books.count("budget replaced");
    this.#setCap(own, command.capCents);
    const teams = command.kind === "replace_project" ? command.teams : [];
    for (const { capCents, teamId } of teams) {
      if (this.#books.level(teamId).capCents !== capCents) this.#setCap(teamId, capCents);
    }
    for (const { agentId, budgetCents } of command.kind === "replace_team" ? command.agents : []) {
      const model = this.#books.accounts.get(agentId);
      if (model === void 0 || model.status === "closed" || model.teamId !== own) continue;
      if (model.policy.budgetCents === budgetCents) continue;
      model.policy = { ...model.policy, budgetCents };
      model.version += 1;
      this.#books.count("budget by team");
    }
    mustEqual(reply.version, level.version, "the version of a replaced budget");
  }
  #setCap(teamId, capCents) {
    const level = this.#books.level(teamId);
    level.capCents = capCents;
    level.version += 1;
  }
};
var inOrder = (ids) => ids.toSorted();

// scripts/simulation/audit/decision-audit.ts
var DecisionAudit = class {
  #books;
  constructor(books) {
    this.#books = books;
  }
  expect(command, reply, { bounds, now }) {
    const { agentId, keyId, request } = command;
    const model = this.#books.account(agentId);
    const known2 = model.byKey.get(request.keyHash);
    if (known2 !== void 0) return this.#expectReplay(known2, model, command, reply);
    if (model.status === "closed") return mustEqual(reply.kind, "no_account", "a closed account's payment");
    if (model.keyId !== keyId) {
      this.#books.count("payment by a dead key");
      return mustEqual(reply.kind, "inactive_key", "a dead key's payment");
    }
    must(
      !this.#books.life(agentId).deadKeys.has(keyId),
      "a key pays of which its owner was answered that it is dead"
    );
    if (reply.kind === "records_check_required") {
      this.#books.count("look up");
      return must(model.payments.some(isClosed), "a look-up, and nothing was closed");
    }
    if (this.#isOutdated(model, request.rulesVersions)) {
      this.#books.count("stale rules");
      return mustEqual(reply.kind, "stale_rules", "a payment that was judged by old rules");
    }
    const isFullAgent = model.open().length >= bounds.openOfAgent;
    if (isFullAgent || this.#books.openCount() >= bounds.openOfProject) {
      const of = isFullAgent ? "agent" : "project";
      this.#books.count(`too many open of the ${of}`);
      return mustEqual(reply, { kind: "too_many_open", of }, "a payment too many");
    }
    must(reply.kind === "decided", `a new key was answered ${reply.kind}`);
    this.#decided(model, command, reply, now);
  }
  #isOutdated({ teamId }, versions) {
    const levels = [
      [this.#books.level(null), versions?.project ?? 0],
      [this.#books.level(teamId), versions?.team ?? 0]
    ];
    if (levels.some(([level, judged]) => judged < level.rulesVersion)) return true;
    for (const [level, judged] of levels) level.rulesVersion = Math.max(level.rulesVersion, judged);
    return false;
  }
  #decided(model, command, { decision, permit }, now) {
    const { agentId, approvalWindowSeconds, request, rules } = command;
    const { amountCents, fingerprint } = request;
    const verdict = this.#books.verdict(model, amountCents, now);
    const what = `a payment of ${amountCents} by ${agentId}`;
    expectDenial(decision.denial, verdict, what);
    const flags = verdict === null ? model.flags(amountCents, fingerprint, rules?.checks ?? [], now) : /* @__PURE__ */ new Set();
    const flagged = decision.approval?.flaggedByRuleTypes ?? [];
    mustEqual(inOrder2(flagged), inOrder2(flags), `what flags ${what}`);
    mustEqual(new Set(flagged).size, flagged.length, "a type of rule that is named twice: types");
    const payment = newPayment(model, command, { verdict, needsPerson: flags.size > 0, now });
    if (decision.approval !== null)
      mustEqual(decision.approval.expiresAt, now + approvalWindowSeconds * 1e3, "the end of the window");
    mustEqual([decision.createdAt, decision.day], [now, payment.day], "when it was decided");
    mustEqual(decision.sequence, model.payments.length + 1, "the sequence");
    const { isArchiveAnswered } = this.#books.life(agentId);
    must(!isArchiveAnswered, "a payment was decided after its agent's archive was answered");
    this.#books.add(model, payment);
    mustEqual(permit !== null, verdict === null && !payment.needsPerson, `whether ${what} is permitted`);
    if (permit !== null) model.permitted(permit);
    this.#books.count(verdict?.code ?? (payment.needsPerson ? "held" : "sending"));
    for (const flag of flags) this.#books.count(`flagged: ${flag}`);
  }
  /** A key that was used is never decided upon again, whatever the ledger has forgotten. */
  #expectReplay(known2, model, command, reply) {
    this.#books.count(`known key: ${reply.kind}`);
    switch (reply.kind) {
      case "replayed":
        mustEqual(reply.transactionId, known2.id, "the transaction of a replay");
        mustEqual(reply.samePayload, known2.payloadHash === command.request.payloadHash, "the same payload");
        return mustEqual(reply.payment.status, known2.status, "the status in a replay");
      case "recorded":
      case "records_check_required":
        return must(isClosed(known2), `${known2.id} is open, and was answered ${reply.kind}`);
      case "no_account":
        return must(model.status === "closed" && isClosed(known2), "an account that is there was not found");
      case "inactive_key":
        return must(
          model.keyId !== command.keyId && isClosed(known2),
          "a known key was answered inactive_key"
        );
      default:
        throw new Error(`a known key was answered ${reply.kind}`);
    }
  }
};
function newPayment(model, { approvalWindowSeconds, request }, decided) {
  const { needsPerson, now, verdict } = decided;
  const isAccepted = verdict === null;
  const { amountCents, fingerprint, keyHash, payloadHash, transactionId } = request;
  const day = model.dayOf(now);
  return {
    id: transactionId,
    agentId: model.agentId,
    keyHash,
    payloadHash,
    fingerprint,
    amountCents,
    createdAt: now,
    countedAt: model.countedAt(now),
    countedOn: day,
    expiresAt: now + approvalWindowSeconds * 1e3,
    needsPerson,
    isCounted: isAccepted,
    status: isAccepted ? "pending" : "denied",
    isOver: !isAccepted,
    day,
    approvedAt: null,
    isFollowed: false,
    isCaptured: false,
    isReversed: false,
    rail: null,
    recorded: null,
    written: /* @__PURE__ */ new Map(),
    isWithdrawn: false,
    revision: 1,
    confirmedRevision: 0
  };
}
var inOrder2 = (names) => [...names].toSorted((one, other) => one.localeCompare(other));

// scripts/simulation/audit/ledger-audit.ts
var AGAIN_MS = 3e5;
var AGAIN_MAX = 256;
var LedgerAudit = class {
  #books;
  #accounts;
  #decisions;
  #payments;
  #answers = /* @__PURE__ */ new Map();
  constructor(books) {
    this.#books = books;
    this.#accounts = new AccountAudit(books);
    this.#decisions = new DecisionAudit(books);
    this.#payments = new PaymentAudit(books);
  }
  expect(command, reply, shown) {
    must(reply.kind !== "failed", () => `${command.kind} failed: ${JSON.stringify(reply)}`);
    const { requestId: requestId2 } = command;
    const first = requestId2 === void 0 ? void 0 : this.#answers.get(requestId2);
    if (first !== void 0) {
      this.#books.count("asked again");
      return expectAgain(first.reply, reply);
    }
    this.#expectNew(command, reply, shown);
    if (requestId2 === void 0) return;
    this.#answers.set(requestId2, { at: shown.now, reply });
    for (const [id, { at }] of this.#answers) {
      if (this.#answers.size <= AGAIN_MAX && at > shown.now - AGAIN_MS) break;
      this.#answers.delete(id);
    }
  }
  #expectNew(command, reply, shown) {
    const { now } = shown;
    switch (command.kind) {
      case "open_account":
        return this.#accounts.expectOpen(command, reply, shown);
      case "pay":
        return this.#decisions.expect(command, reply, shown);
      case "confirm":
        return this.#payments.expectConfirmed(command, reply, now);
      case "approve":
      case "deny":
      case "cancel":
      case "expire":
        return this.#payments.expectResolution(command, reply, now);
      case "request_permission":
        return this.#payments.expectPermission(command, reply);
      case "read_payment":
        return this.#payments.expectRead(command.transactionId, reply);
      case "change_policy":
        return this.#accounts.expectPolicy(command, reply);
      case "pause":
      case "resume":
        return this.#accounts.expectStatus(command, reply, now);
      case "follow_agent":
        return this.#accounts.expectFollowed(command, reply, now);
      case "replace_project":
      case "replace_team":
        return this.#accounts.expectReplaced(command, reply);
      case "follow_rules": {
        const level = this.#books.level(command.teamId);
        level.rulesVersion = Math.max(level.rulesVersion, command.version);
        return mustEqual(reply.kind, "confirmed", "the answer to new rules");
      }
      case "confirm_records":
      case "confirm_caps":
      case "confirm_limits":
        return mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
  }
};
function expectAgain(first, reply) {
  const [was, is] = [first, reply].map(answerOf);
  if (first.kind === "payment" && reply.kind === "not_open") return;
  mustEqual(is, was, "the answer to a request that came again");
}
function answerOf(reply) {
  if (reply.kind === "payment") return { kind: reply.kind, changed: reply.changed };
  return reply.kind === "replaced" ? { kind: reply.kind, version: reply.version } : reply;
}

// scripts/simulation/audit/agent-audit.ts
var DENIED = "MACHINE_ARCHIVE_DENIED";
var AgentAudit = class {
  #books;
  constructor(books) {
    this.#books = books;
  }
  expect({ agentId, command, now, reply, summary }) {
    const model = this.#books.life(agentId);
    switch (command.kind) {
      case "authenticate":
        this.#expectUse(model, command.keyId, reply, now);
        break;
      case "mint_key":
        this.#expectMint(model, command.keyId, reply);
        break;
      case "revoke_key":
        this.#expectRevoke(model, reply);
        break;
      case "prove_non_delivery":
        this.#expectProof(model, command.lineageId, reply, now);
        break;
      case "archive":
        this.#expectArchive(model, command.by, reply, now);
        break;
      case "rename":
        mustEqual(reply.kind, model.archivedAt === null ? "renamed" : "archived", "a new name");
        if (model.archivedAt === null) model.name = command.name;
        break;
      case "confirm_detached":
        if (model.archivedAt !== null) model.isDetached = true;
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
        break;
      case "confirm_record":
      case "confirm_followed":
      case "follow_status":
        mustEqual(reply.kind, "confirmed", `the answer to ${command.kind}`);
    }
    this.#expectShown(model, summary);
  }
  #expectUse(model, keyId, reply, now) {
    const accepted = model.archivedAt === null && model.keys.isActive(keyId);
    mustEqual(reply, { kind: "authenticated", accepted }, `the use of ${keyId}`);
    this.#books.count(accepted ? "key accepted" : "key refused");
    if (accepted) model.keys.authenticatedAt ??= now;
  }
  #expectMint({ archivedAt, keys }, keyId, reply) {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a key for an archived agent");
    if (keys.activeKeyId() === keyId) return mustEqual(reply, { kind: "key", keyId }, "the same key");
    if (keys.activeKeyId() !== null) return mustEqual(reply.kind, "key_exists", "a second key");
    mustEqual(reply, { kind: "key", keyId }, "a new key");
    keys.mint(keyId);
    this.#books.count("key minted");
  }
  #expectRevoke({ archivedAt, keys }, reply) {
    if (archivedAt !== null) return mustEqual(reply.kind, "archived", "a revocation at an archived agent");
    const keyId = keys.activeKeyId();
    if (keyId === null) return mustEqual(reply.kind, "no_key", "a revocation without a key");
    mustEqual(reply, { kind: "key", keyId }, "a revocation");
    keys.revoke(keyId);
    this.#books.count("key revoked");
  }
  /** Stamped once, after the window, for the lineage that created the agent. */
  #expectProof({ keys }, lineageId, reply, now) {
    const windowOver = keys.isWindowOver(now);
    const proven = windowOver && keys.lineageId === lineageId;
    mustEqual(reply, { kind: "non_delivery", windowOver, proven }, "a proof of non-delivery");
    if (proven) keys.provenAt ??= now;
    this.#books.count(proven ? "proven" : "not proven");
  }
  #expectArchive(model, by, reply, now) {
    const code = by.type === "user" ? null : this.#refusal(model, by, now);
    if (code !== null) {
      this.#books.count(code);
      return mustEqual(reply, { kind: "archive_refused", code }, "an archive by a machine");
    }
    mustEqual(reply, { kind: "archive", changed: model.archivedAt === null }, "an archive");
    if (model.archivedAt !== null) return this.#books.count("archived before");
    model.archivedAt = now;
    model.keys.die();
    this.#books.account(model.agentId).journal.happened("agent.archived", now);
    this.#books.count(by.type === "user" ? "archived" : "archived by a machine");
  }
  /**
   * A machine may archive only what it has created itself and was never used: in this order, what can never
   * change comes before what a retry may mend.
   */
  #refusal({ archivedAt, keys }, by, now) {
    if (by.lineageId !== keys.lineageId) return DENIED;
    if (archivedAt !== null) return null;
    if (keys.isTouchedByPerson || keys.authenticatedAt !== null) return DENIED;
    if (!keys.isWindowOver(now)) return "KEY_STILL_DELIVERABLE";
    if (keys.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
    if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
    return by.balance === "zero" ? null : DENIED;
  }
  /** What its record shows is what the book says, and one revision of it always the same. */
  #expectShown(model, summary) {
    const { agentId, keys } = model;
    mustEqual(summary.name, model.name, `the name of ${agentId}`);
    mustEqual(summary.archivedAt, model.archivedAt, `when ${agentId} was archived`);
    mustEqual(summary.walletDetached, model.isDetached, `whether the wallet of ${agentId} is detached`);
    mustEqual(summary.keyId, keys.activeKeyId(), "the active key");
    mustEqual(summary.authenticatedAt, keys.authenticatedAt, "when a key was first used");
    this.#books.account(agentId).journal.expectOutbox(summary.events, ["agent.archived"]);
    const { events: _told, ...record } = summary;
    must(record.revision >= model.revision, "an agent's revision fell");
    const text2 = JSON.stringify(record);
    must(record.revision > model.revision || text2 === model.record, "one revision shows two things");
    model.revision = record.revision;
    model.record = text2;
  }
};

// scripts/simulation/audit/key-model.ts
var KeyModel = class {
  /** Of the organization's key that created the agent; null: a person did. */
  lineageId;
  /** The end of the window in which a replay of the create delivers the first key again. */
  deliverableUntil;
  #keys = /* @__PURE__ */ new Map();
  isTouchedByPerson = false;
  authenticatedAt = null;
  provenAt = null;
  constructor({ deliverableUntil, keyId, lineageId }) {
    this.lineageId = lineageId;
    this.deliverableUntil = deliverableUntil;
    this.#keys.set(keyId, "active");
  }
  isActive(keyId) {
    return this.#keys.get(keyId) === "active";
  }
  activeKeyId() {
    const active = [...this.#keys].filter(([, state]) => state === "active").map(([keyId]) => keyId);
    must(active.length <= 1, "an agent has two active keys");
    return active[0] ?? null;
  }
  isWindowOver(now) {
    return now >= this.deliverableUntil;
  }
  mint(keyId) {
    this.#keys.set(keyId, "active");
    this.isTouchedByPerson = true;
  }
  revoke(keyId) {
    this.#keys.set(keyId, "dead");
    this.isTouchedByPerson = true;
  }
  /** With their agent's archive. */
  die() {
    for (const keyId of this.#keys.keys()) this.#keys.set(keyId, "dead");
  }
};

// scripts/simulation/audit/agent-model.ts
var AgentModel = class {
  agentId;
  keys;
  name;
  archivedAt = null;
  isDetached = false;
  /** Of its record, and what the record of this revision shows. */
  revision = 0;
  record = "";
  /** Keys of which clients were answered that they are dead. */
  deadKeys = /* @__PURE__ */ new Set();
  /** Whether who archived it was answered. */
  isArchiveAnswered = false;
  /** Whether who paused it was answered, at this turn of its account. */
  pausedAtSequence = null;
  constructor({ agentId, name }, firstKey) {
    this.agentId = agentId;
    this.name = name;
    this.keys = new KeyModel(firstKey);
  }
};

// scripts/simulation/audit/auditor.ts
var Auditor = class {
  #books = new WorldModel();
  #ledgerAudit = new LedgerAudit(this.#books);
  #agentAudit = new AgentAudit(this.#books);
  violation = null;
  /** What has happened, how often. */
  get tally() {
    return this.#books.tally;
  }
  agentCreated(profile, firstKey) {
    this.#audit(() => {
      this.#books.account(profile.agentId);
      this.#books.lives.set(profile.agentId, new AgentModel(profile, firstKey));
    });
  }
  agentAnswered(answered) {
    this.#audit(() => this.#agentAudit.expect(answered));
  }
  ledgerAnswered(command, reply, shown) {
    this.#audit(() => {
      const agentId = "agentId" in command ? command.agentId : "";
      const model = this.#books.accounts.get(agentId);
      const levels = [null, ...Object.keys(shown.caps.teams)].map((teamId) => this.#books.level(teamId));
      const before2 = levels.map(usedCents);
      const usedBefore = model?.usedCents ?? 0;
      this.#ledgerAudit.expect(command, reply, shown);
      levels.forEach((level, place) => {
        const most = Math.max(level.capCents ?? Infinity, before2[place] ?? 0);
        must(usedCents(level) <= most, "more was used than there is room under a cap");
      });
      if (model !== void 0)
        must(
          model.usedCents <= Math.max(model.policy.budgetCents, usedBefore),
          "more was used than there is budget"
        );
      this.#expectShown(agentId, shown);
    });
  }
  /** What the ledger shows is what the book says, at all three levels. */
  #expectShown(agentId, { account, caps }) {
    for (const [teamId, { cap, totals }] of [[null, caps.project], ...Object.entries(caps.teams)]) {
      const { capCents, reservedCents, spentCents, version } = this.#books.level(teamId);
      const where = teamId ?? "the project";
      mustEqual({ ...totals }, { spentCents, reservedCents }, `the totals of ${where}`);
      mustEqual({ ...cap }, { capCents, version }, `the cap of ${where}`);
    }
    if (account === null) return;
    const model = this.#books.account(agentId);
    mustEqual(account.spentCents, model.spentCents, `spent by ${agentId}`);
    mustEqual(account.reservedCents, model.reservedCents, `reserved by ${agentId}`);
    mustEqual(account.status, model.status, `the status of ${agentId}`);
    mustEqual(account.policyVersion, model.version, `the version of the policy of ${agentId}`);
    mustEqual({ ...account.policy }, { ...model.policy }, `the policy of ${agentId}`);
  }
  rolledOver(actor, before2, after2) {
    this.#audit(() => mustBeSame(after2, before2, `continue-as-new lost something of ${actor}`));
  }
  accountRecorded({ agentId, events }) {
    this.#audit(() => this.#books.account(agentId).journal.write(events));
  }
  agentRecorded({ agentId, events }) {
    this.#audit(() => this.#books.account(agentId).journal.write(events));
  }
  /** A revision may be written by several, who must all mean the same by it. */
  paymentRecorded({ approval: approval2, phase, request, revision, status }) {
    this.#audit(() => {
      const payment = this.#books.payment(request.transactionId);
      const { recorded, written } = payment;
      const text2 = `${status} ${phase} ${approval2?.resolution ?? ""}`;
      const before2 = written.get(revision) ?? text2;
      mustEqual(text2, before2, `revision ${revision} of ${payment.id} was written as two things`);
      written.set(revision, text2);
      if (recorded !== null && recorded.revision >= revision) return;
      const was = recorded?.status ?? "pending";
      must(mayFollow(was, status), `${payment.id} was ${was} and became ${status}`);
      must(status !== "approved" || payment.isCaptured, `${payment.id} is approved and was never paid`);
      payment.recorded = { revision, status };
    });
  }
  /** Not while its agent is paused, once the caller who paused it was answered. */
  captured(transactionId, amountCents) {
    this.#audit(() => {
      const payment = this.#books.payment(transactionId);
      const { pausedAtSequence } = this.#books.life(payment.agentId);
      const { turns } = this.#books.account(payment.agentId);
      must(pausedAtSequence !== turns, `${transactionId} was paid while its agent was paused`);
      must(!payment.isCaptured, `${transactionId} was paid twice`);
      mustEqual(amountCents, payment.amountCents, `what was paid for ${transactionId}`);
      must(payment.status === "pending", `${transactionId} was paid when it was ${payment.status}`);
      const { approvedAt, expiresAt, needsPerson } = payment;
      const isApproved = approvedAt !== null && approvedAt < expiresAt;
      must(!needsPerson || isApproved, `${transactionId} was paid without a person's approval`);
      payment.isCaptured = true;
      this.#books.count("captured");
    });
  }
  reversed(transactionId) {
    this.#audit(() => {
      const payment = this.#books.payment(transactionId);
      must(payment.isCaptured && !payment.isReversed, `${transactionId} was given back for nothing`);
      payment.isReversed = true;
      this.#books.count("given back");
    });
  }
  railAnswered(transactionId, outcome) {
    const payment = this.#books.payments.get(transactionId);
    if (payment !== void 0) payment.rail = nameOf(outcome);
  }
  clientAnswered(agentId, keyHash, transactionId) {
    this.#audit(() => {
      const known2 = this.#books.accounts.get(agentId)?.byKey.get(keyHash);
      mustEqual(transactionId, known2?.id, "the transaction that a key was answered with");
    });
  }
  pauseAnswered(agentId) {
    const model = this.#books.accounts.get(agentId);
    const life = this.#books.lives.get(agentId);
    if (model?.status !== "paused" || life === void 0) return;
    life.pausedAtSequence = model.turns;
    this.#books.count("pause answered");
  }
  archiveAnswered(agentId, record) {
    this.#audit(() => {
      mustEqual(
        this.#books.account(agentId).status,
        "closed",
        "an archive was answered before the ledger had received it"
      );
      mustEqual(record?.archivedAt === null, false, "an archive was answered before it was recorded");
      this.#books.life(agentId).isArchiveAnswered = true;
      this.#books.count("archive answered");
    });
  }
  keyAnswered(agentId, deadKeyId) {
    this.#audit(() => {
      if (deadKeyId === null) return;
      const { keyId } = this.#books.account(agentId);
      must(keyId !== deadKeyId, "a revocation was answered before the ledger had received it");
      this.#books.life(agentId).deadKeys.add(deadKeyId);
      this.#books.count("revocation answered");
    });
  }
  capsAnswered(answered) {
    this.#audit(() => {
      for (const { cap, recorded, teamId } of answered) {
        const isRecorded2 = recorded.version >= cap.version;
        must(isRecorded2, `the cap of ${teamId ?? "the project"} was answered before it was recorded`);
      }
      this.#books.count("caps answered");
    });
  }
  rulesAnswered(teamId, version) {
    this.#audit(() => {
      const { rulesVersion } = this.#books.level(teamId);
      must(rulesVersion >= version, "rules were answered before the ledger had received them");
      this.#books.count("rules answered");
    });
  }
  checked(agentId, amountCents, denialCode, now) {
    this.#audit(() => {
      const verdict = this.#books.verdict(this.#books.account(agentId), amountCents, now);
      mustEqual(denialCode, verdict?.code ?? null, `what a dry run of ${amountCents} by ${agentId} said`);
      this.#books.count("dry run");
    });
  }
  atRest(books) {
    this.#audit(() => {
      auditAtRest(this.#books, books);
      this.#books.count("at rest");
    });
  }
  /**
   * Whether the rail has answered a process an end that the ledger has not received: that process died over it, and the ledger
   * learns of it when the rail is asked the next time.
   */
  get isBehindItsRail() {
    for (const payment of this.#books.payments.values()) {
      if (!payment.isOver && payment.rail !== null && STATUS_BY_RAIL[payment.rail] !== payment.status)
        return true;
    }
    return false;
  }
  broke(what, error) {
    this.violation ??= new Violation(`${what}: ${String(error)}`, { cause: error });
  }
  #audit(work) {
    if (this.violation !== null) return;
    try {
      work();
    } catch (error) {
      this.violation = error instanceof Error ? error : new Error(String(error));
    }
  }
};
var usedCents = ({ reservedCents, spentCents }) => spentCents + reservedCents;
var nameOf = (outcome) => outcome.status === "settled" && outcome.final ? "final" : outcome.status;

// src/domain/ledger/payment.ts
var RAILS = ["card", "wallet"];
var perRail = (make) => ({
  card: make("card"),
  wallet: make("wallet")
});
var AGENT_PAUSED = { code: "AGENT_PAUSED", reason: "The agent is paused.", details: null };
function moneyOf({ status }) {
  if (status === "pending") return "reserved";
  return status === "approved" ? "spent" : "none";
}
function settle(payment, outcome, now) {
  if (payment.phase !== "sending" && payment.phase !== "following") return payment;
  switch (outcome.status) {
    case "pending":
      return payment.phase === "sending" ? onRail(payment, { phase: "following", ...traceOf(outcome) }) : payment;
    case "settled":
      return settled(payment, outcome);
    case "failed":
      return payment.status === "pending" ? failed(payment, outcome, now) : payment;
    case "reversed":
      return onRail(payment, {
        status: "reversed",
        phase: "done",
        deniedAt: now,
        approval: resolve(payment, "approved")
      });
    case "withheld":
      return payment.status === "pending" ? withheld(payment, now) : payment;
  }
}
var withheld = (payment, now) => onRail(payment, {
  status: "denied",
  phase: "done",
  denial: AGENT_PAUSED,
  deniedAt: now,
  approval: resolve(payment, "failed")
});
function settled(payment, outcome) {
  const phase = outcome.final ? "done" : "following";
  if (payment.status === "approved" && payment.phase === phase) return payment;
  const approval2 = resolve(payment, "approved");
  return onRail(payment, { status: "approved", phase, approval: approval2, ...traceOf(outcome) });
}
var traceOf = ({ onChain: onChain2 }) => onChain2 === void 0 ? {} : { onChainTxHash: onChain2.txHash, chainCaip2: onChain2.chainCaip2 };
function failed(payment, outcome, now) {
  return onRail(payment, {
    status: "failed",
    phase: "done",
    denial: { code: outcome.code, reason: outcome.reason, details: null },
    deniedAt: now,
    approval: resolve(payment, "failed"),
    ...traceOf(outcome)
  });
}
function onRail(payment, change) {
  const after2 = { ...payment, ...change };
  return { ...after2, revision: payment.revision - stepsOnRail(payment) + stepsOnRail(after2) };
}
function stepsOnRail({ phase, status }) {
  if (phase === "following") return status === "pending" ? 1 : 2;
  return phase === "done" ? 3 : 0;
}
var HELD_REVISION = 1;
var resolve = (payment, resolution) => payment.approval === null ? null : { ...payment.approval, resolution };
var next = (payment, change) => ({
  ...payment,
  ...change,
  revision: payment.revision + 1
});

// src/domain/rules/compared-name.ts
var INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
var SPACES = /\p{White_Space}+/gu;
var comparedName = (recipient) => recipient.normalize("NFKC").replaceAll(INVISIBLE, "").toLowerCase().toUpperCase().toLowerCase().normalize("NFKC").replaceAll(SPACES, " ").trim();

// src/domain/rules/time-window.ts
var MINUTE_MS = 6e4;
var DAY_MINUTES = 1440;
var EPOCH_WEEKDAY = 3;
function minutesOf(time) {
  const [hours = 0, minutes = 0] = time.split(":").map(Number);
  return hours * 60 + minutes;
}
function wallClock({ segments, untilMs }, now) {
  if (now >= untilMs) return null;
  const segment = segments.findLast(([sinceMs]) => sinceMs <= now);
  if (segment === void 0) return null;
  const minutes = Math.floor(now / MINUTE_MS + segment[1]);
  const day = Math.floor(minutes / DAY_MINUTES);
  return { weekday: (day + EPOCH_WEEKDAY) % 7, minutes: minutes - day * DAY_MINUTES };
}
function timeWindowFlags(check, offsets, now) {
  const wall = offsets === void 0 ? null : wallClock(offsets, now);
  if (wall === null) return true;
  return isInside(check, wall.weekday, wall.minutes) !== check.outside;
}
function isInside({ days, fromMinutes, toMinutes }, weekday, minutes) {
  if (fromMinutes < toMinutes) {
    return days.includes(weekday) && minutes >= fromMinutes && minutes < toMinutes;
  }
  const dayBefore = (weekday + 6) % 7;
  return minutes >= fromMinutes ? days.includes(weekday) : minutes < toMinutes && days.includes(dayBefore);
}
var isSameWindow = (one, other) => one.fromMinutes === other.fromMinutes && one.toMinutes === other.toMinutes && one.outside === other.outside && one.days.length === other.days.length && one.days.every((day, index) => day === other.days[index]);

// src/domain/rules/rules.ts
var RULE_TYPES = [
  "amount_above",
  "new_recipient",
  "recipient",
  "merchant_category",
  "rail",
  "velocity",
  "time_window",
  "duplicate"
];
var WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
var RULE_WINDOW_SECONDS_MAX = 2678400;
var BY_SERVER = {
  amount_above: ({ amountCents }) => ({ flags: (payment) => payment.amountCents > amountCents }),
  new_recipient: () => ({ flags: ({ isNewRecipient }) => isNewRecipient }),
  recipient({ anyOf }) {
    const texts = new Set(anyOf.map(comparedName));
    return { texts, flags: (payment) => texts.has(payment.comparedName) };
  },
  merchant_category({ anyOf }) {
    const texts = new Set(anyOf);
    return {
      texts,
      flags: ({ merchantCategory }) => merchantCategory !== null && texts.has(merchantCategory)
    };
  },
  rail({ anyOf }) {
    const rails = new Set(anyOf);
    return { flags: ({ rail }) => rails.has(rail) };
  }
};
var BY_LEDGER = {
  velocity: {
    ready({ count, windowSeconds }) {
      const check = { type: "velocity", count, windowSeconds };
      return () => check;
    },
    flags: ({ count, windowSeconds }, { countWithin: countWithin2 }) => countWithin2(windowSeconds * 1e3) >= count,
    covers: (earlier, later) => earlier.count <= later.count && earlier.windowSeconds >= later.windowSeconds
  },
  duplicate: {
    ready({ windowSeconds }) {
      const check = { type: "duplicate", windowSeconds };
      return () => check;
    },
    flags({ windowSeconds }, { newestSimilarAt: newestSimilarAt2, now }) {
      const likeAt = newestSimilarAt2();
      return likeAt !== null && likeAt > now - windowSeconds * 1e3;
    },
    covers: (earlier, later) => earlier.windowSeconds >= later.windowSeconds
  },
  time_window: {
    ready({ days, from, outside, timezone, to }) {
      const window = {
        days: days.map((day) => WEEKDAYS.indexOf(day)).toSorted((a, b) => a - b),
        fromMinutes: minutesOf(from),
        toMinutes: minutesOf(to),
        outside
      };
      return (zoneOf) => ({ type: "time_window", zone: zoneOf(timezone), ...window });
    },
    flags: (check, { now, zones }) => timeWindowFlags(check, zones?.[check.zone], now),
    covers: (earlier, later) => earlier.zone === later.zone && isSameWindow(earlier, later)
  }
};
var SERVER_RULE_TYPES = RULE_TYPES.filter(
  (type) => type in BY_SERVER
);
var isLedgerCheck = (check) => check.type in BY_LEDGER;
var judge = (check, facts) => BY_LEDGER[check.type].flags(check, facts);
var checkFlags = (check, facts) => isLedgerCheck(check) ? judge(check, facts) : true;

// src/domain/ledger/usage.ts
var HOUR_MS = 36e5;
var DAY_MS = 864e5;
var HISTORY_MS = RULE_WINDOW_SECONDS_MAX * 1e3;
var HOUR_ENTRIES_MAX = 4096;
var emptyUsage = () => ({
  spentCents: 0,
  reservedCents: 0,
  day: { date: "", amountCents: 0, count: 0 },
  recentPayments: []
});
var [knownDay, knownDate] = [0, "1970-01-01"];
function utcDate(now) {
  const day = Math.floor(now / DAY_MS);
  if (day !== knownDay) {
    knownDate = new Date(now).toISOString().slice(0, 10);
    knownDay = day;
  }
  return knownDate;
}
var nextUtcMidnight = (now) => (Math.floor(now / DAY_MS) + 1) * DAY_MS;
var dayCounted = ({ day }, now) => {
  const today = utcDate(now);
  return day.date > today ? day.date : today;
};
var instantCounted = ({ recentPayments }, now) => Math.max(now, recentPayments.at(-1)?.[0] ?? now);
function dayResetsAt(usage, now) {
  const today = nextUtcMidnight(now);
  return usage.day.date > utcDate(now) ? nextUtcMidnight(Date.parse(usage.day.date)) : today;
}
function spentToday(usage, now) {
  const date = dayCounted(usage, now);
  return usage.day.date === date ? usage.day : { date, amountCents: 0, count: 0 };
}
function countWithin({ recentPayments: hour }, windowMs, now) {
  const newest = hour.at(-1);
  const oldest = hour[firstAfter(hour, now - windowMs)];
  if (newest === void 0 || oldest === void 0) return 0;
  const [, count, through] = oldest;
  return newest[2] - through + count;
}
function firstAfter(hour, since) {
  let [older, newer] = [0, hour.length];
  while (older < newer) {
    const middle = older + newer >>> 1;
    if ((hour[middle]?.[0] ?? Infinity) <= since) older = middle + 1;
    else newer = middle;
  }
  return older;
}
function countWithinHour(usage, now, ownAt = null) {
  const count = countWithin(usage, HOUR_MS, now);
  return ownAt !== null && ownAt > now - HOUR_MS ? Math.max(0, count - 1) : count;
}
function countToday(usage, now, ownDay = null) {
  const today = spentToday(usage, now);
  return ownDay === today.date ? Math.max(0, today.count - 1) : today.count;
}
function slotFreeAt(usage, limit, now) {
  if (limit === 0) return null;
  let newer = 0;
  for (let index = usage.recentPayments.length - 1; index >= 0; index -= 1) {
    const entry = usage.recentPayments[index];
    if (entry === void 0 || entry[0] <= now - HOUR_MS) break;
    newer += entry[1];
    if (newer >= limit) return entry[0] + HOUR_MS;
  }
  return null;
}
function rollDay(usage, now) {
  const date = utcDate(now);
  if (date > usage.day.date) usage.day = { date, amountCents: 0, count: 0 };
}
function countPayment(usage, now) {
  rollDay(usage, now);
  usage.day.count += 1;
  countInstant(usage.recentPayments, now);
  let expired = 0;
  while ((usage.recentPayments[expired]?.[0] ?? Infinity) <= now - HISTORY_MS) expired += 1;
  if (expired > 0) usage.recentPayments.splice(0, expired);
  if (usage.recentPayments.length > HOUR_ENTRIES_MAX) mergeOldest(usage, now);
}
function countInstant(hour, now) {
  const newest = hour.at(-1);
  if (newest === void 0) return void hour.push([now, 1, 1]);
  if (newest[0] < now) return void hour.push([now, 1, newest[2] + 1]);
  newest[1] += 1;
  newest[2] += 1;
}
function mergeOldest(usage, now) {
  const recent = usage.recentPayments.findIndex(([at]) => at > now - HOUR_MS);
  const mergeable = recent >= 2 ? Math.max(2, Math.floor(recent / 2)) : Math.floor(usage.recentPayments.length / 2);
  const merged = [];
  for (let index = 0; index < mergeable; index += 2) {
    const first = usage.recentPayments[index];
    const second = usage.recentPayments[index + 1];
    if (first === void 0) continue;
    const isPair = second !== void 0 && index + 1 < mergeable;
    merged.push(isPair ? [second[0], first[1] + second[1], second[2]] : first);
  }
  usage.recentPayments = [...merged, ...usage.recentPayments.slice(mergeable)];
}

// src/domain/events.ts
var lifecycleEventId = (agentId, of, revision) => `evt_${agentId}_${of}_${revision}`;

// src/domain/agent/access.ts
var initialAccess = (first) => ({
  activeKeyId: first.keyId,
  bundled: { ...first, erased: false, provenAt: null },
  touchedByPerson: false,
  authenticatedAt: null
});
var isDeliverable = (deliverableUntil, now) => now < deliverableUntil;

// src/domain/agent/archive.ts
function machineArchiveRefusal({ access }, by, now) {
  const { authenticatedAt, bundled, touchedByPerson } = access;
  if (bundled.lineageId !== by.lineageId) return "MACHINE_ARCHIVE_DENIED";
  if (touchedByPerson || authenticatedAt !== null) return "MACHINE_ARCHIVE_DENIED";
  if (isDeliverable(bundled.deliverableUntil, now)) return "KEY_STILL_DELIVERABLE";
  if (bundled.provenAt === null) return "KEY_DELIVERY_UNPROVEN";
  if (by.balance === "unreadable") return "BALANCE_UNVERIFIABLE";
  return by.balance === "zero" ? null : "MACHINE_ARCHIVE_DENIED";
}
var isOfLineage = ({ access }, lineageId) => access.bundled.lineageId === lineageId;

// src/domain/agent/changes.ts
function changeForRecord(state, now) {
  state.revision += 1;
  state.updatedAt = now;
}
function changeForLedger(state, now) {
  changeForRecord(state, now);
  state.ledgerRevision = state.revision;
}

// src/domain/agent/keys.ts
function authenticate(state, { keyId }, now) {
  const { access, archivedAt } = state;
  if (archivedAt !== null || access.activeKeyId !== keyId) return { kind: "authenticated", accepted: false };
  if (access.authenticatedAt === null) {
    access.authenticatedAt = now;
    changeForRecord(state, now);
  }
  return { kind: "authenticated", accepted: true };
}
function mintKey(state, { keyId }, now) {
  const { access, archivedAt } = state;
  if (archivedAt !== null) return { kind: "archived" };
  if (access.activeKeyId === keyId) return { kind: "key", keyId };
  if (access.activeKeyId !== null) return { kind: "key_exists" };
  setKey(state, keyId, now);
  return { kind: "key", keyId };
}
function revokeKey(state, now) {
  const { access, archivedAt } = state;
  if (archivedAt !== null) return { kind: "archived" };
  const keyId = access.activeKeyId;
  if (keyId === null) return { kind: "no_key" };
  setKey(state, null, now);
  return { kind: "key", keyId };
}
function setKey(state, keyId, now) {
  state.access.activeKeyId = keyId;
  state.access.touchedByPerson = true;
  changeForLedger(state, now);
}
function proveNonDelivery(state, { lineageId }, now) {
  const { bundled } = state.access;
  const windowOver = !isDeliverable(bundled.deliverableUntil, now);
  const proven = windowOver && isOfLineage(state, lineageId);
  if (proven) bundled.provenAt ??= now;
  return { kind: "non_delivery", windowOver, proven };
}

// src/domain/agent/handle.ts
function handle(state, command, now) {
  switch (command.kind) {
    case "rename":
      return rename(state, command, now);
    case "authenticate":
      return authenticate(state, command, now);
    case "mint_key":
      return mintKey(state, command, now);
    case "revoke_key":
      return revokeKey(state, now);
    case "prove_non_delivery":
      return proveNonDelivery(state, command, now);
    case "archive":
      return archive(state, command.by, now);
    case "confirm_detached":
      return confirmDetached(state, now);
    case "confirm_record":
      return confirmRecord(state, command);
    case "confirm_followed":
      state.followedRevision = Math.max(state.followedRevision, Math.min(command.revision, state.revision));
      return CONFIRMED;
    case "follow_status":
      return followStatus(state, command);
  }
}
var CONFIRMED = { kind: "confirmed" };
function rename(state, { name }, now) {
  if (state.archivedAt !== null) return { kind: "archived" };
  if (state.profile.name === name) return { kind: "renamed" };
  state.profile = { ...state.profile, name };
  changeForLedger(state, now);
  return { kind: "renamed" };
}
function archive(state, by, now) {
  if (state.archivedAt !== null) return archivedBefore(state, by);
  const code = by.type === "user" ? null : machineArchiveRefusal(state, by, now);
  if (code !== null) return { kind: "archive_refused", code };
  state.archivedAt = now;
  state.access.activeKeyId = null;
  changeForLedger(state, now);
  const { revision } = state;
  const id = lifecycleEventId(state.profile.agentId, "agent", revision);
  state.outbox = [...state.outbox, { id, type: "agent.archived", at: now, revision }];
  return { kind: "archive", changed: true };
}
function archivedBefore(state, by) {
  const mayKnow = by.type === "user" || isOfLineage(state, by.lineageId);
  if (mayKnow) return { kind: "archive", changed: false };
  return { kind: "archive_refused", code: "MACHINE_ARCHIVE_DENIED" };
}
function confirmDetached(state, now) {
  if (state.archivedAt === null || state.walletDetached) return CONFIRMED;
  state.walletDetached = true;
  changeForRecord(state, now);
  return CONFIRMED;
}
function confirmRecord(state, { revision }) {
  state.confirmedRevision = Math.max(state.confirmedRevision, Math.min(revision, state.revision));
  state.outbox = state.outbox.filter((event) => event.revision > state.confirmedRevision);
  return CONFIRMED;
}
function followStatus(state, { revision, status }) {
  if (revision <= state.statusRevision) return CONFIRMED;
  state.statusRevision = revision;
  state.status = status;
  return CONFIRMED;
}

// src/domain/agent/state.ts
var initialAgentState = (profile, firstKey, now) => ({
  schemaVersion: 1,
  profile,
  access: initialAccess(firstKey),
  status: "active",
  statusRevision: 0,
  archivedAt: null,
  walletDetached: false,
  // The create writes the agent's first record, and opens its account.
  revision: 1,
  confirmedRevision: 1,
  ledgerRevision: 1,
  followedRevision: 1,
  updatedAt: now,
  outbox: []
});
var summarize = (state) => ({
  agentId: state.profile.agentId,
  name: state.profile.name,
  archivedAt: state.archivedAt,
  walletDetached: state.walletDetached,
  keyId: state.access.activeKeyId,
  authenticatedAt: state.access.authenticatedAt,
  revision: state.revision,
  updatedAt: state.updatedAt,
  events: state.outbox
});
var followedOf = ({ access, archivedAt, profile, revision }) => ({
  revision,
  name: profile.name,
  keyId: access.activeKeyId,
  isArchived: archivedAt !== null
});
var isUnfollowed = ({ followedRevision, ledgerRevision }) => followedRevision < ledgerRevision;
var isFinished = (state) => state.archivedAt !== null && state.walletDetached && !isUnfollowed(state) && state.confirmedRevision >= state.revision && state.access.bundled.erased;

// src/domain/ledger/confirming.ts
var CONFIRMED2 = { kind: "confirmed" };
function confirm(draft, command) {
  const { agentId, outcome, revision, transactionId } = command;
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === void 0 || open === void 0) return CONFIRMED2;
  const payment = outcome === null ? open.payment : settle(open.payment, outcome.result, outcome.at);
  if (payment !== open.payment) draft.change(account, payment);
  draft.confirm(account, transactionId, revision);
  return CONFIRMED2;
}
function confirmRecords(draft, { records }) {
  for (const { agentId, revision } of records) {
    const account = draft.account(agentId);
    if (account === void 0) continue;
    account.confirmedRevision = Math.max(account.confirmedRevision, Math.min(revision, account.revision));
    account.outbox = account.outbox.filter((event) => event.revision > account.confirmedRevision);
  }
  return CONFIRMED2;
}
function confirmCaps(draft, { caps }) {
  for (const { teamId, version } of caps) {
    const { cap, recordedCapVersion: recorded } = draft.level(teamId);
    draft.setLevel(teamId, { recordedCapVersion: Math.max(recorded, Math.min(version, cap.version)) });
  }
  return CONFIRMED2;
}
function confirmLimits(draft, { agentId, policyVersion }) {
  const account = draft.account(agentId);
  if (account === void 0) return CONFIRMED2;
  const mirrored = Math.min(policyVersion, account.policyVersion);
  account.mirroredPolicyVersion = Math.max(account.mirroredPolicyVersion, mirrored);
  return CONFIRMED2;
}

// src/domain/ledger/closed-keys.ts
var noClosedKeys = () => ({ byAgent: /* @__PURE__ */ new Map(), order: [], count: 0 });
var isClosedKey = ({ byAgent }, agentId, keyHash) => byAgent.get(agentId)?.has(keyHash) === true;
function addClosedKey(closedKeys, { agentId, key, keyHash }, max) {
  const keys = closedKeys.byAgent.get(agentId) ?? /* @__PURE__ */ new Map();
  closedKeys.byAgent.set(agentId, keys.set(keyHash, key));
  closedKeys.order.push([agentId, keyHash]);
  closedKeys.count += 1;
  if (closedKeys.order.length > 2 * max) closedKeys.order = known(closedKeys);
  const evicted = [];
  while (closedKeys.count > max && closedKeys.order.length > 0) evicted.push(...evictOldest(closedKeys, max));
  return evicted;
}
var known = ({ byAgent, order }) => order.filter(([agentId, keyHash]) => byAgent.get(agentId)?.has(keyHash) === true);
var EVICTED_SHARE = 1 / 20;
function evictOldest(closedKeys, max) {
  const oldest = closedKeys.order.splice(0, Math.max(1, Math.ceil(max * EVICTED_SHARE)));
  return oldest.flatMap(([agentId, keyHash]) => {
    const keys = closedKeys.byAgent.get(agentId);
    const key = keys?.get(keyHash);
    if (keys === void 0 || key === void 0) return [];
    keys.delete(keyHash);
    if (keys.size === 0) closedKeys.byAgent.delete(agentId);
    closedKeys.count -= 1;
    return [[agentId, key[0]]];
  });
}
function dropAgentKeys(closedKeys, agentId) {
  closedKeys.count -= closedKeys.byAgent.get(agentId)?.size ?? 0;
  closedKeys.byAgent.delete(agentId);
}
function newestSimilarAt(closedKeys, account, fingerprint) {
  let newestAt = null;
  const note = (at) => void (newestAt = Math.max(newestAt ?? at, at));
  for (const [, createdAt, closed] of closedKeys.byAgent.get(account.agentId)?.values() ?? []) {
    if (closed === fingerprint) note(createdAt);
  }
  for (const { payment } of account.open.values()) {
    if (payment.status !== "denied" && payment.request.fingerprint === fingerprint) note(payment.createdAt);
  }
  return newestAt;
}

// src/domain/ledger/state.ts
var NO_CAP = { capCents: null, version: 1 };
var NO_TOTALS = { spentCents: 0, reservedCents: 0 };
var NEW_LEVEL = {
  cap: NO_CAP,
  totals: NO_TOTALS,
  rulesVersion: 0,
  recordedCapVersion: NO_CAP.version,
  capChangedAt: 0
};
var LEDGER_BOUNDS = {
  accounts: 1e4,
  openOfAgent: 200,
  openOfProject: 2e3,
  closedKeys: 5e3,
  openedBelowBytes: 125e4,
  // Each above the one before: what is on its way needs some room to come to its end.
  paidBelowBytes: 145e4,
  resolvedBelowBytes: 153e4
};
var newLedger = (organizationId, projectId, bounds = LEDGER_BOUNDS) => ({
  bounds,
  organizationId,
  projectId,
  revision: 0,
  recordedRevision: 0,
  project: NEW_LEVEL,
  teams: /* @__PURE__ */ new Map(),
  accounts: /* @__PURE__ */ new Map(),
  keys: noClosedKeys(),
  replies: /* @__PURE__ */ new Map(),
  droppedAccounts: 0,
  weightBytes: 0,
  openPayments: 0,
  touched: /* @__PURE__ */ new Set()
});
var newAccount = (opened, now) => ({
  ...opened,
  status: "active",
  followedRevision: 0,
  policyVersion: 1,
  usage: emptyUsage(),
  sequence: 0,
  open: /* @__PURE__ */ new Map(),
  closed: 0,
  evictedThrough: 0,
  // The create writes the agent's first record.
  revision: 1,
  confirmedRevision: 1,
  updatedAt: now,
  mirroredPolicyVersion: 1,
  pausedAt: null,
  outbox: []
});
var levelOf = ({ teams }, teamId) => teams.get(teamId) ?? NEW_LEVEL;
var summaryOf = (account) => ({
  agentId: account.agentId,
  status: account.status,
  policy: account.policy,
  policyVersion: account.policyVersion,
  spentCents: account.usage.spentCents,
  reservedCents: account.usage.reservedCents,
  revision: account.revision,
  updatedAt: account.updatedAt,
  events: account.outbox
});
var profileIn = ({ organizationId, projectId }, { agentId, name, teamId }) => ({ organizationId, projectId, teamId, agentId, name });

// src/domain/ledger/weight.ts
var ACCOUNT_BYTES = 110;
var USED_BYTES = 60;
var INSTANT_BYTES = 8;
var OPEN_BYTES = 480;
var EVENT_BYTES = 60;
function weightOf({ name, open, outbox, sequence, usage }) {
  let bytes = ACCOUNT_BYTES + textBytes(name) + outbox.length * EVENT_BYTES;
  if (sequence > 0) bytes += USED_BYTES + usage.recentPayments.length * INSTANT_BYTES;
  for (const { payment } of open.values()) bytes += paymentBytes(payment);
  return bytes;
}
var weighed = /* @__PURE__ */ new WeakMap();
function paymentBytes(payment) {
  const known2 = weighed.get(payment);
  if (known2 !== void 0) return known2;
  const { approval: approval2, denial, request } = payment;
  const bytes = OPEN_BYTES + textBytes(request.purpose) + textBytes(request.recipient) + textBytes(approval2?.feedback) + textBytes(approval2?.resolvedBy?.name) + textBytes(denial?.reason);
  weighed.set(payment, bytes);
  return bytes;
}
var MIXED = 1.2;
function textBytes(text2) {
  let [plain, other] = [0, 0];
  for (let at = 0; at < (text2?.length ?? 0); at += 1) {
    const unit = text2?.charCodeAt(at) ?? 0;
    if (unit < 128) plain += 1;
    else other += unit < 2048 || unit >= 55296 && unit < 57344 ? 2 : 3;
  }
  return plain + Math.ceil(other * MIXED);
}

// src/domain/ledger/draft.ts
var Draft = class {
  ledger;
  now;
  #accounts = /* @__PURE__ */ new Map();
  #teams = /* @__PURE__ */ new Map();
  #project = null;
  #closings = [];
  constructor(ledger, now) {
    this.ledger = ledger;
    this.now = now;
  }
  /** The account to change; undefined where there is none, or none any more. */
  account(agentId) {
    const drafted = this.#accounts.get(agentId);
    if (drafted !== void 0) return drafted;
    const account = this.ledger.accounts.get(agentId);
    if (account === void 0) return void 0;
    const copy = copyOf(account);
    this.#accounts.set(agentId, copy);
    return copy;
  }
  open(account) {
    this.#accounts.set(account.agentId, account);
  }
  /** The project (null), or one of its teams. */
  level(teamId) {
    if (teamId === null) return this.#project ?? this.ledger.project;
    return this.#teams.get(teamId) ?? levelOf(this.ledger, teamId);
  }
  setLevel(teamId, change) {
    const level = { ...this.level(teamId), ...change };
    if (teamId === null) this.#project = level;
    else this.#teams.set(teamId, level);
  }
  /** A payment that was decided: held and counted at every level, unless it was denied. */
  add(account, payment) {
    account.sequence = payment.sequence;
    setOpen(account, payment, { changedAt: this.now, confirmedRevision: 0 });
    if (payment.denial !== null) return;
    countPayment(account.usage, this.now);
    move(account.usage, payment, "none", moneyOf(payment));
    this.touch(account);
  }
  /** A payment that has become something else: what it holds or has spent follows from its status alone. */
  change(account, payment) {
    const open = account.open.get(payment.request.transactionId);
    if (open === void 0) throw new Error("a payment changed that is not open");
    const before2 = open.payment;
    if (payment.revision <= before2.revision) throw new Error("a payment changed without a new revision");
    setOpen(account, payment, { ...open, changedAt: this.now });
    const isMoved = moneyOf(before2) !== moneyOf(payment);
    if (isMoved || before2.day !== payment.day) {
      rollDay(account.usage, this.now);
      move(account.usage, before2, moneyOf(before2), "none");
      move(account.usage, payment, "none", moneyOf(payment));
    }
    if (isMoved) this.touch(account);
  }
  /** The effects of this revision are done. A payment that changes no more is closed with its last one. */
  confirm(account, transactionId, revision) {
    const open = account.open.get(transactionId);
    if (open === void 0) return;
    const { payment } = open;
    const confirmedRevision = Math.max(open.confirmedRevision, Math.min(revision, payment.revision));
    const closes = payment.phase === "done" && confirmedRevision === payment.revision;
    if (closes) this.#close(account, payment);
    else account.open.set(transactionId, { ...open, confirmedRevision });
  }
  #close(account, { createdAt, request, status }) {
    account.open.delete(request.transactionId);
    account.closed += 1;
    const { keyHash, fingerprint } = request;
    const closedFingerprint = status === "denied" ? null : fingerprint;
    this.#closings.push({
      agentId: account.agentId,
      keyHash,
      key: [account.closed, createdAt, closedFingerprint]
    });
  }
  /** What the agent's record shows of the account has changed. */
  touch(account) {
    account.revision += 1;
    account.updatedAt = this.now;
  }
  /** The same, and adds an event to the outbox. */
  emit(account, type) {
    this.touch(account);
    const { agentId, revision } = account;
    const event = { id: lifecycleEventId(agentId, "account", revision), type, at: this.now, revision };
    account.outbox = [...account.outbox, event];
  }
  /** Commits all changes. Throws, with nothing changed, where it would break what always holds. */
  commit() {
    for (const account of this.#accounts.values()) assertSound(account);
    const { ledger } = this;
    if (this.#project !== null) ledger.project = this.#project;
    for (const [teamId, team] of this.#teams) ledger.teams.set(teamId, team);
    for (const account of this.#accounts.values()) this.#put(account);
    for (const closing of this.#closings) this.#addClosed(closing);
  }
  #put(account) {
    const { ledger } = this;
    const { agentId, teamId, usage } = account;
    const before2 = ledger.accounts.get(agentId);
    const isDropped = isFinished2(account);
    const spentCents = usage.spentCents - (before2?.usage.spentCents ?? 0);
    const reservedCents = usage.reservedCents - (before2?.usage.reservedCents ?? 0);
    const team = levelOf(ledger, teamId);
    ledger.teams.set(teamId, { ...team, totals: plus(team.totals, spentCents, reservedCents) });
    ledger.project = { ...ledger.project, totals: plus(ledger.project.totals, spentCents, reservedCents) };
    ledger.openPayments += account.open.size - (before2?.open.size ?? 0);
    ledger.weightBytes += (isDropped ? 0 : weightOf(account)) - (before2 === void 0 ? 0 : weightOf(before2));
    ledger.touched.add(agentId);
    if (!isDropped) return void ledger.accounts.set(agentId, account);
    ledger.accounts.delete(agentId);
    ledger.droppedAccounts += 1;
    dropAgentKeys(ledger.keys, agentId);
  }
  #addClosed(closing) {
    const { accounts, bounds, keys } = this.ledger;
    if (!accounts.has(closing.agentId)) return;
    for (const [agentId, closedAs] of addClosedKey(keys, closing, bounds.closedKeys)) {
      const account = accounts.get(agentId);
      if (account !== void 0) account.evictedThrough = Math.max(account.evictedThrough, closedAs);
    }
  }
};
var isFinished2 = ({ confirmedRevision, open, outbox, revision, status }) => status === "closed" && open.size === 0 && outbox.length === 0 && confirmedRevision >= revision;
var plus = (totals, spentCents, reservedCents) => ({
  spentCents: totals.spentCents + spentCents,
  reservedCents: totals.reservedCents + reservedCents
});
var setOpen = (account, payment, rest) => void account.open.set(payment.request.transactionId, { ...rest, payment });
function copyOf(account) {
  const { open, usage } = account;
  const hour = usage.recentPayments.slice();
  const newest = hour.at(-1);
  if (newest !== void 0) hour[hour.length - 1] = [...newest];
  return {
    ...account,
    open: new Map(open),
    usage: { ...usage, day: { ...usage.day }, recentPayments: hour }
  };
}
function move(usage, { day, request: { amountCents } }, from, to) {
  if (from === "reserved") usage.reservedCents -= amountCents;
  if (from === "spent") usage.spentCents -= amountCents;
  if (to === "reserved") usage.reservedCents += amountCents;
  if (to === "spent") usage.spentCents += amountCents;
  if (day !== usage.day.date) return;
  if (from !== "none") usage.day.amountCents -= amountCents;
  if (to !== "none") usage.day.amountCents += amountCents;
}
var isAmount = (cents) => Number.isSafeInteger(cents) && cents >= 0;
function assertSound({ usage: { reservedCents, spentCents } }) {
  if (isAmount(reservedCents) && isAmount(spentCents)) return;
  throw new Error(
    `an account would hold ${String(reservedCents)} and have spent ${String(spentCents)} cents`
  );
}

// src/domain/ledger/permission.ts
var isInFlight = ({ phase, status }) => status === "pending" && (phase === "sending" || phase === "following");

// src/domain/ledger/sending.ts
function requestPermission(draft, { agentId, transactionId }) {
  const account = draft.account(agentId);
  const open = account?.open.get(transactionId);
  if (account === void 0 || open === void 0) return { kind: "not_open" };
  if (!isInFlight(open.payment)) return { kind: "payment", changed: false, payment: open.payment };
  return { kind: "permission", permission: permissionOf(account, open) };
}
function permissionOf({ revision, status }, { isWithdrawn }) {
  if (isWithdrawn === true) return { kind: "withdraw" };
  return status === "paused" ? { kind: "wait", fence: revision } : { kind: "send", permit: revision };
}
function fenceOf({ open, revision, status }) {
  if (status === "active") return null;
  const requests = [...open.values()].flatMap(
    ({ payment }) => isInFlight(payment) ? [payment.request] : []
  );
  if (requests.length === 0) return null;
  const idsOn = (on) => requests.flatMap(({ rail, transactionId }) => rail === on ? [transactionId] : []);
  return { fence: revision, payments: perRail(idsOn) };
}
function withdrawOpen({ open }, now) {
  for (const [id, each] of open) {
    if (isInFlight(each.payment)) open.set(id, woken({ ...each, isWithdrawn: true }, now));
  }
}
function wakeOpen({ open }, now) {
  for (const [id, each] of open) open.set(id, woken(each, now));
}
var woken = (open, now) => open.payment.phase === "sending" ? { ...open, dueAt: now } : open;

// src/domain/ledger/reply-cache.ts
var REPLY_RETENTION_MS = 3e5;
var CACHED_REPLIES_MAX = 256;
function cachedReply(ledger, { requestId: requestId2 }) {
  const { accounts, replies } = ledger;
  const known2 = requestId2 === void 0 ? void 0 : replies.get(requestId2);
  if (known2 === void 0) return null;
  const [, reply] = known2;
  if (reply.kind === "caps_ref")
    return { kind: "replaced", version: reply.version, caps: unrecorded(ledger) };
  if (reply.kind === "status_ref") {
    const { agentId, changed, status } = reply;
    const account = accounts.get(agentId);
    return {
      kind: "account_status",
      status,
      changed,
      fence: account === void 0 ? null : fenceOf(account)
    };
  }
  if (reply.kind !== "payment_ref") return reply;
  const open = accounts.get(reply.agentId)?.open.get(reply.transactionId);
  if (open === void 0) return { kind: "not_open" };
  return { kind: "payment", changed: reply.changed, payment: open.payment };
}
var replyToCache = (command, reply) => command.requestId === void 0 ? null : { requestId: command.requestId, reply: cacheable(command, reply) };
function cacheReply({ replies }, { reply, requestId: requestId2 }, now) {
  replies.set(requestId2, [now, reply]);
  for (const [id, [at]] of replies) {
    if (replies.size <= CACHED_REPLIES_MAX && at > now - REPLY_RETENTION_MS) return;
    replies.delete(id);
  }
}
function unrecorded({ project, teams }) {
  const levels = [[null, project], ...teams];
  return levels.filter(([, { cap, recordedCapVersion }]) => recordedCapVersion < cap.version).map(([teamId, { cap }]) => ({ teamId, cap }));
}
function cacheable(command, reply) {
  if (reply.kind === "replaced") return { kind: "caps_ref", version: reply.version };
  if (!("agentId" in command)) return reply;
  const { agentId } = command;
  if (reply.kind === "account_status") {
    const { changed: changed2, status } = reply;
    return { kind: "status_ref", agentId, status, changed: changed2 };
  }
  if (reply.kind !== "payment") return reply;
  const { changed, payment } = reply;
  return { kind: "payment_ref", agentId, transactionId: payment.request.transactionId, changed };
}

// src/domain/money.ts
var MAX_CENTS = 1e12;
var remainingOf = (limitCents, usedCents2) => Math.max(0, limitCents - usedCents2);

// src/domain/ledger/policy.ts
var dollars = (cents) => `${(cents / 100).toFixed(2)} USD`;
var limitDenial = (code, reason, limit, remaining, resetsAt) => ({ code, reason, details: { limit, remaining, resetsAt } });
function checkLimits(policy2, usage, amountCents, now, own = null) {
  return checkPerTransaction(policy2, amountCents) ?? checkBudget(policy2, usage, amountCents, own) ?? checkDailySpend(policy2, usage, amountCents, now, own) ?? checkHourlyVelocity(policy2, usage, now, own) ?? checkDailyVelocity(policy2, usage, now, own);
}
function checkPerTransaction(policy2, amountCents) {
  const limit = policy2.perTransactionLimitCents;
  if (limit === null || amountCents <= limit) return null;
  const reason = `The payment is above the limit of ${dollars(limit)} per transaction.`;
  return limitDenial("PER_TRANSACTION_LIMIT_EXCEEDED", reason, limit, limit, null);
}
function checkBudget(policy2, usage, amountCents, own) {
  const used = usage.spentCents + usage.reservedCents - (own?.amountCents ?? 0);
  if (used + amountCents <= policy2.budgetCents) return null;
  const remaining = remainingOf(policy2.budgetCents, used);
  const reason = `The payment exceeds the remaining budget: ${dollars(remaining)} of ${dollars(policy2.budgetCents)}.`;
  return limitDenial("BUDGET_EXCEEDED", reason, policy2.budgetCents, remaining, null);
}
function checkDailySpend(policy2, usage, amountCents, now, own) {
  const limit = policy2.dailySpendLimitCents;
  if (limit === null) return null;
  const today = spentToday(usage, now);
  const ownToday = own !== null && own.day === today.date ? own.amountCents : 0;
  const used = today.amountCents - ownToday;
  if (used + amountCents <= limit) return null;
  const remaining = remainingOf(limit, used);
  const reason = `The payment exceeds what remains for today: ${dollars(remaining)} of ${dollars(limit)}.`;
  return limitDenial("DAILY_SPEND_LIMIT_EXCEEDED", reason, limit, remaining, dayResetsAt(usage, now));
}
function checkHourlyVelocity(policy2, usage, now, own) {
  const limit = policy2.hourlyVelocityLimit;
  if (limit === null) return null;
  const used = countWithinHour(usage, now, own?.countedAt ?? null);
  if (used < limit) return null;
  const reason = `The agent has made its ${limit} payments of the last hour.`;
  return limitDenial("HOURLY_VELOCITY_EXCEEDED", reason, limit, 0, slotFreeAt(usage, limit, now));
}
function checkDailyVelocity(policy2, usage, now, own) {
  const limit = policy2.dailyVelocityLimit;
  if (limit === null) return null;
  const used = countToday(usage, now, own?.day ?? null);
  if (used < limit) return null;
  const reason = `The agent has made its ${limit} payments of today.`;
  return limitDenial("DAILY_VELOCITY_EXCEEDED", reason, limit, 0, dayResetsAt(usage, now));
}
function isAboveThreshold(policy2, amountCents) {
  const threshold = policy2.autoApprovalThresholdCents;
  if (threshold === null) return false;
  return threshold === 0 || amountCents > threshold;
}
var patchPolicy = (policy2, patch2) => ({
  ...policy2,
  ...patch2
});

// src/domain/ledger/held.ts
var AGENT_ARCHIVED = {
  code: "AGENT_ARCHIVED",
  reason: "The agent is archived.",
  details: null
};
function deny(payment, { by, feedback, proof }, now) {
  const denial = { code: "APPROVAL_DENIED", reason: "A person denied the payment.", details: null };
  const approval2 = { resolvedBy: by, feedback, proof };
  return end(payment, "denied", denial, "denied", now, approval2);
}
function cancel(payment, now) {
  const denial = {
    code: "CANCELLED_BY_AGENT",
    reason: "The agent cancelled the payment.",
    details: null
  };
  return end(payment, "denied", denial, "denied", now);
}
function expire(payment, now) {
  const denial = {
    code: "APPROVAL_EXPIRED",
    reason: "No one decided within the approval window.",
    details: null
  };
  return end(payment, "expired", denial, "expired", now);
}
function end(payment, status, denial, resolution, now, approval2 = {}) {
  return next(payment, {
    status,
    phase: "done",
    denial,
    deniedAt: now,
    approval: withApproval(payment, { ...approval2, resolution, resolvedAt: now })
  });
}
var withApproval = (payment, change) => payment.approval === null ? null : { ...payment.approval, ...change };
function endByArchive(payment, now) {
  const isLate = payment.approval !== null && now >= payment.approval.expiresAt;
  return isLate ? expire(payment, now) : end(payment, "denied", AGENT_ARCHIVED, "denied", now);
}

// src/domain/ledger/caps.ts
function checkCaps(ledger, { teamId }, amountCents, ownCents = 0) {
  return checkCap("TEAM_CAP_EXCEEDED", "team", levelOf(ledger, teamId), amountCents, ownCents) ?? checkCap("PROJECT_CAP_EXCEEDED", "project", ledger.project, amountCents, ownCents);
}
function checkCap(code, noun, { cap: { capCents }, totals }, amountCents, ownCents) {
  if (capCents === null) return null;
  const usedCents2 = usedOf(totals) - ownCents;
  if (usedCents2 + amountCents <= capCents) return null;
  const remaining = remainingOf(capCents, usedCents2);
  const reason = `The payment exceeds what remains of the ${noun}'s cap: ${dollars(remaining)} of ${dollars(capCents)}.`;
  return limitDenial(code, reason, capCents, remaining, null);
}
var remainingCents = ({ capCents }, totals) => capCents === null ? null : remainingOf(capCents, usedOf(totals));
var usedOf = ({ reservedCents, spentCents }) => spentCents + reservedCents;

// src/domain/rules/flags.ts
function flaggedTypes(rules, history, now) {
  const facts = { ...history, zones: rules.zones, now };
  const flagged = /* @__PURE__ */ new Set();
  for (const check of rules.checks) {
    if (!flagged.has(check.type) && checkFlags(check, facts)) flagged.add(check.type);
  }
  return [...flagged];
}

// src/domain/ledger/pay.ts
function pay(draft, command) {
  const { ledger, now } = draft;
  const { agentId, keyId, recordsCheckedThrough, request, rules } = command;
  const account = draft.account(agentId);
  if (!isCacheCurrent(account, command)) return { kind: "stale_agent" };
  if (account === void 0) return { kind: "no_account" };
  const known2 = replayOf(ledger, account, request);
  if (known2 !== null) return known2;
  if (account.status === "closed") return { kind: "no_account" };
  if (account.keyId !== keyId) return { kind: "inactive_key" };
  if (account.evictedThrough > recordsCheckedThrough)
    return { kind: "records_check_required", closed: account.closed };
  if (!judgedByNewestRules(draft, account, request.rulesVersions)) return { kind: "stale_rules" };
  const full = boundReached(ledger, account);
  if (full !== null) return { kind: "too_many_open", of: full };
  const assessment = assess(ledger, account, { ...request, rules }, now);
  const decision = decisionOf(account, command, assessment, now);
  const payment = decidedPayment(request, decision);
  draft.add(account, payment);
  return { kind: "decided", decision, permit: payment.phase === "sending" ? account.revision : null };
}
function isCacheCurrent(account, { keyId, cachedAgentRevision }) {
  if (cachedAgentRevision === void 0) return true;
  if (account === void 0 || account.status !== "active" || account.keyId !== keyId) return false;
  return account.followedRevision <= cachedAgentRevision;
}
function replayOf({ keys }, { agentId, open }, { keyHash, payloadHash }) {
  if (isClosedKey(keys, agentId, keyHash)) return { kind: "recorded" };
  for (const { payment } of open.values()) {
    const { request } = payment;
    if (request.keyHash !== keyHash) continue;
    const samePayload = request.payloadHash === payloadHash;
    return { kind: "replayed", transactionId: request.transactionId, samePayload, payment };
  }
  return null;
}
function judgedByNewestRules(draft, { teamId }, versions) {
  const [project, team] = [draft.level(null), draft.level(teamId)];
  const judged = { project: versions?.project ?? 0, team: versions?.team ?? 0 };
  if (judged.project < project.rulesVersion || judged.team < team.rulesVersion) return false;
  if (judged.project > project.rulesVersion) draft.setLevel(null, { rulesVersion: judged.project });
  if (judged.team > team.rulesVersion) draft.setLevel(teamId, { rulesVersion: judged.team });
  return true;
}
function boundReached({ bounds, openPayments, weightBytes }, { open }) {
  if (open.size >= bounds.openOfAgent) return "agent";
  const isFull = openPayments >= bounds.openOfProject || weightBytes >= bounds.paidBelowBytes;
  return isFull ? "project" : null;
}
function assess(ledger, account, payment, now) {
  const { amountCents, rules } = payment;
  const denial = statusDenial(account) ?? checkLimits(account.policy, account.usage, amountCents, now) ?? checkCaps(ledger, account, amountCents);
  if (denial !== null) return { denial, flaggedByRuleTypes: [] };
  const byThreshold = isAboveThreshold(account.policy, amountCents) ? ["agent_threshold"] : [];
  const history = {
    countWithin: (windowMs) => countWithin(account.usage, windowMs, now),
    newestSimilarAt: () => latest(newestSimilarAt(ledger.keys, account, payment.fingerprint), rules?.similarAt ?? null)
  };
  const byRules = rules === void 0 ? [] : flaggedTypes(rules, history, now);
  return { denial: null, flaggedByRuleTypes: [...byThreshold, ...byRules] };
}
var latest = (one, other) => one === null || other === null ? one ?? other : Math.max(one, other);
function statusDenial({ status }) {
  if (status === "active") return null;
  return status === "paused" ? AGENT_PAUSED : AGENT_ARCHIVED;
}
function decisionOf(account, command, { denial, flaggedByRuleTypes }, now) {
  const isHeld2 = denial === null && flaggedByRuleTypes.length > 0;
  return {
    sequence: account.sequence + 1,
    createdAt: now,
    countedAt: instantCounted(account.usage, now),
    day: dayCounted(account.usage, now),
    denial,
    approval: isHeld2 ? newApproval(account, command, flaggedByRuleTypes, now) : null,
    policyVersion: account.policyVersion
  };
}
function newApproval({ policy: { budgetCents }, usage }, { approvalWindowSeconds, request }, flaggedByRuleTypes, now) {
  const { spentCents } = usage;
  const reservedCents = usage.reservedCents + request.amountCents;
  const remainingCents2 = remainingOf(budgetCents, spentCents + reservedCents);
  return {
    id: request.approvalId,
    flaggedByRuleTypes,
    budgetContext: { budgetCents, spentCents, reservedCents, remainingCents: remainingCents2 },
    expiresAt: now + approvalWindowSeconds * 1e3,
    resolution: null,
    resolvedAt: null,
    resolvedBy: null,
    feedback: null
  };
}
function decidedPayment(request, decision) {
  const { approval: approval2, countedAt, createdAt, day, denial, policyVersion, sequence } = decision;
  const isDenied = denial !== null;
  const isHeld2 = approval2 !== null;
  return {
    request,
    sequence,
    createdAt,
    countedAt,
    day,
    status: isDenied ? "denied" : "pending",
    phase: isDenied ? "done" : isHeld2 ? "held" : "sending",
    executor: isHeld2 ? "approval" : "server",
    denial,
    deniedAt: isDenied ? createdAt : null,
    approval: approval2,
    onChainTxHash: null,
    chainCaip2: null,
    policyVersion,
    revision: 1
  };
}

// src/domain/ledger/holds.ts
var approveHeld = (draft, command) => tooHeavy(draft) ?? resolve2(draft, command, (payment, account) => approved(draft.ledger, account, payment, command, draft.now));
var denyHeld = (draft, command) => tooHeavy(draft) ?? resolve2(draft, command, (payment) => deny(payment, command, draft.now));
var cancelHeld = (draft, command) => resolve2(draft, command, (payment) => cancel(payment, draft.now));
var expireHeld = (draft, command) => resolve2(draft, command, (payment) => expire(payment, draft.now));
var tooHeavy = ({ ledger: { bounds, weightBytes } }) => weightBytes < bounds.resolvedBelowBytes ? null : { kind: "too_many_open", of: "project" };
function resolve2(draft, { agentId, transactionId }, resolution) {
  const { now } = draft;
  const account = draft.account(agentId);
  const payment = account?.open.get(transactionId)?.payment;
  if (account === void 0 || payment === void 0) return { kind: "not_open" };
  if (payment.phase !== "held" || payment.approval === null)
    return { kind: "payment", changed: false, payment };
  const isLate = now >= payment.approval.expiresAt;
  const resolved = isLate ? expire(payment, now) : resolution(payment, account);
  draft.change(account, resolved);
  return { kind: "payment", changed: !isLate, payment: resolved };
}
function approved(ledger, account, payment, { by, proof }, now) {
  const { amountCents } = payment.request;
  const own = { amountCents, day: payment.day, countedAt: payment.countedAt };
  const denial = statusDenial(account) ?? checkLimits(account.policy, account.usage, amountCents, now, own) ?? checkCaps(ledger, account, amountCents, amountCents);
  const resolution = { resolvedAt: now, resolvedBy: by, proof, policyVersion: account.policyVersion };
  if (denial !== null) {
    const approval2 = withApproval(payment, { ...resolution, resolution: "failed" });
    return next(payment, { status: "failed", phase: "done", denial, deniedAt: now, approval: approval2 });
  }
  return next(payment, {
    phase: "sending",
    // What is spent today counts today, also when it was put on hold yesterday.
    day: dayCounted(account.usage, now),
    approval: withApproval(payment, { ...resolution, resolution: "executing" })
  });
}
function endAllHeld(draft, account) {
  const held = [...account.open.values()].map(({ payment }) => payment).filter(({ phase }) => phase === "held");
  for (const payment of held) draft.change(account, endByArchive(payment, draft.now));
  return held.map(({ request }) => request.transactionId);
}

// src/domain/ledger/levels.ts
function replaceProject(draft, command) {
  const { capCents, teams, version } = command;
  const { cap } = draft.level(null);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, null, capCents)];
  for (const team of teams) {
    const isChanged = draft.level(team.teamId).cap.capCents !== team.capCents;
    if (isChanged) caps.push(setCap(draft, team.teamId, team.capCents));
  }
  return { kind: "replaced", version: version + 1, caps };
}
function replaceTeam(draft, command) {
  const { agents, capCents, teamId, version } = command;
  const { cap } = draft.level(teamId);
  if (version !== cap.version) return { kind: "version_conflict", version: cap.version };
  const caps = [setCap(draft, teamId, capCents)];
  for (const { agentId, budgetCents } of agents) setBudget(draft, teamId, agentId, budgetCents);
  return { kind: "replaced", version: version + 1, caps };
}
function setCap(draft, teamId, capCents) {
  const { version } = draft.level(teamId).cap;
  const cap = { capCents, version: version + 1 };
  draft.setLevel(teamId, { cap, capChangedAt: draft.now });
  return { teamId, cap };
}
function setBudget(draft, teamId, agentId, budgetCents) {
  const known2 = draft.ledger.accounts.get(agentId);
  const isOfTeam = known2 !== void 0 && known2.teamId === teamId && known2.status !== "closed";
  if (!isOfTeam || known2.policy.budgetCents === budgetCents) return;
  const account = draft.account(agentId);
  if (account === void 0) return;
  account.policy = { ...account.policy, budgetCents };
  account.policyVersion += 1;
  draft.touch(account);
}
function followRules(draft, { teamId, version }) {
  const { rulesVersion } = draft.level(teamId);
  if (version > rulesVersion) draft.setLevel(teamId, { rulesVersion: version });
  return { kind: "confirmed" };
}

// src/domain/ledger/account.ts
function openAccount(draft, command) {
  const { kind: _kind, requestId: _requestId, ...opened } = command;
  const { ledger, now } = draft;
  if (ledger.accounts.has(opened.agentId)) return { kind: "opened", changed: false };
  const { accounts, bounds, weightBytes } = ledger;
  const isFull = accounts.size >= bounds.accounts || weightBytes >= bounds.openedBelowBytes;
  if (isFull) return { kind: "project_full" };
  draft.open(newAccount(opened, now));
  return { kind: "opened", changed: true };
}
function setAccountStatus(draft, agentId, status) {
  const account = draft.account(agentId);
  if (account === void 0 || account.status === "closed") return { kind: "no_account" };
  const changed = account.status !== status;
  if (changed && status === "paused") pause(draft, account);
  if (changed && status === "active") resume(draft, account);
  return { kind: "account_status", status, changed, fence: fenceOf(account) };
}
function pause(draft, account) {
  account.status = "paused";
  account.pausedAt = draft.now;
  if (account.keyId === null) withdrawOpen(account, draft.now);
  draft.emit(account, "agent.paused");
}
function resume(draft, account) {
  account.status = "active";
  account.pausedAt = null;
  wakeOpen(account, draft.now);
  draft.emit(account, "agent.resumed");
}
function followAgent(draft, command) {
  const account = follow(draft, command);
  if (account === null) return { kind: "followed", ended: [] };
  account.name = command.name;
  if (command.isArchived) return { kind: "followed", ended: close(draft, account) };
  account.keyId = command.keyId;
  if (command.keyId === null && account.status === "paused") withdrawOpen(account, draft.now);
  return { kind: "followed", ended: [] };
}
function close(draft, account) {
  const ended = endAllHeld(draft, account);
  if (account.status === "paused") withdrawOpen(account, draft.now);
  account.status = "closed";
  account.keyId = null;
  account.pausedAt = null;
  draft.touch(account);
  return ended;
}
function follow(draft, { agentId, revision }) {
  const account = draft.account(agentId);
  const isNews = account !== void 0 && account.status !== "closed" && revision > account.followedRevision;
  if (!isNews) return null;
  account.followedRevision = revision;
  return account;
}
function changePolicy(draft, command) {
  const account = draft.account(command.agentId);
  if (account === void 0 || account.status === "closed") return { kind: "no_account" };
  const { policy: before2, policyVersion } = account;
  if (command.version !== policyVersion) return { kind: "version_conflict", version: policyVersion };
  account.policy = patchPolicy(before2, command.patch);
  account.policyVersion += 1;
  draft.touch(account);
  return { kind: "policy", before: before2, policy: account.policy, policyVersion: account.policyVersion };
}

// src/domain/ledger/judge.ts
function judge2(ledger, command, now) {
  const draft = new Draft(ledger, now);
  try {
    const first = cachedReply(ledger, command);
    if (first !== null) return first;
    const reply = decide(draft, command);
    const answer = replyToCache(command, reply);
    draft.commit();
    if (answer !== null) cacheReply(ledger, answer, now);
    return reply;
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}
function decide(draft, command) {
  switch (command.kind) {
    case "open_account":
      return openAccount(draft, command);
    case "pay":
      return pay(draft, command);
    case "confirm":
      return confirm(draft, command);
    case "confirm_records":
      return confirmRecords(draft, command);
    case "confirm_caps":
      return confirmCaps(draft, command);
    case "confirm_limits":
      return confirmLimits(draft, command);
    case "approve":
      return approveHeld(draft, command);
    case "deny":
      return denyHeld(draft, command);
    case "expire":
      return expireHeld(draft, command);
    case "cancel":
      return cancelHeld(draft, command);
    case "request_permission":
      return requestPermission(draft, command);
    case "read_payment":
      return readPayment(draft, command);
    case "change_policy":
      return changePolicy(draft, command);
    case "pause":
      return setAccountStatus(draft, command.agentId, "paused");
    case "resume":
      return setAccountStatus(draft, command.agentId, "active");
    case "follow_agent":
      return followAgent(draft, command);
    case "replace_project":
      return replaceProject(draft, command);
    case "replace_team":
      return replaceTeam(draft, command);
    case "follow_rules":
      return followRules(draft, command);
  }
}
function readPayment({ ledger }, command) {
  const open = ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
  return open === void 0 ? { kind: "not_open" } : { kind: "payment", changed: false, payment: open.payment };
}

// src/domain/ledger/pack.ts
function packLedger(ledger) {
  const { replies, droppedAccounts, keys, organizationId, project, projectId, teams } = ledger;
  const { recordedRevision, revision } = ledger;
  const accounts = /* @__PURE__ */ new Map();
  for (const account of ledger.accounts.values()) {
    const { teamId } = account;
    const ofTeam = accounts.get(teamId);
    if (ofTeam === void 0) accounts.set(teamId, [packAccount(account)]);
    else ofTeam.push(packAccount(account));
  }
  return {
    schemaVersion: 1,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    project: packLevel(project),
    teams: [...teams].map(([teamId, level]) => ({
      teamId,
      ...packLevel(level),
      accounts: accounts.get(teamId) ?? []
    })),
    keys: keys.order.flatMap(([agentId, keyHash]) => {
      const key = keys.byAgent.get(agentId)?.get(keyHash);
      return key === void 0 ? [] : [[agentId, keyHash, ...key]];
    }),
    replies: [...replies].map(([requestId2, answer]) => [requestId2, ...answer]),
    droppedAccounts
  };
}
function unpackLedger(packed, bounds = LEDGER_BOUNDS) {
  const { organizationId, projectId, recordedRevision, revision } = packed;
  const ledger = {
    bounds,
    organizationId,
    projectId,
    revision,
    recordedRevision,
    project: unpackLevel(packed.project),
    teams: new Map(packed.teams.map((team) => [team.teamId, unpackLevel(team)])),
    accounts: /* @__PURE__ */ new Map(),
    keys: { byAgent: /* @__PURE__ */ new Map(), order: [], count: 0 },
    replies: new Map(packed.replies.map(([requestId2, at, reply]) => [requestId2, [at, reply]])),
    droppedAccounts: packed.droppedAccounts,
    weightBytes: 0,
    openPayments: 0,
    touched: /* @__PURE__ */ new Set()
  };
  for (const { accounts, teamId } of packed.teams) {
    for (const each of accounts) put(ledger, unpackAccount(teamId, each));
  }
  for (const [agentId, keyHash, ...key] of packed.keys) {
    const ofAgent2 = ledger.keys.byAgent.get(agentId) ?? /* @__PURE__ */ new Map();
    ledger.keys.byAgent.set(agentId, ofAgent2.set(keyHash, key));
    ledger.keys.order.push([agentId, keyHash]);
    ledger.keys.count += 1;
  }
  return ledger;
}
function put(ledger, account) {
  ledger.accounts.set(account.agentId, account);
  ledger.weightBytes += weightOf(account);
  ledger.openPayments += account.open.size;
}
var packLevel = ({ cap, capChangedAt, recordedCapVersion, rulesVersion, totals }) => ({
  ...cap.capCents === null && cap.version === NO_CAP.version ? {} : { cap },
  ...totals.spentCents === 0 && totals.reservedCents === 0 ? {} : { totals },
  ...unlessDefault("rulesVersion", rulesVersion, 0),
  ...unlessDefault("recordedCap", recordedCapVersion, cap.version),
  ...unlessDefault("capChangedAt", capChangedAt, 0)
});
var unpackLevel = ({
  cap = NO_CAP,
  capChangedAt = 0,
  recordedCap = cap.version,
  rulesVersion = 0,
  totals = NO_TOTALS
}) => ({ cap, totals, rulesVersion, recordedCapVersion: recordedCap, capChangedAt });
function unlessDefault(name, value, usual) {
  return value === usual ? {} : { [name]: value };
}
function packAccount(account) {
  const {
    confirmedRevision,
    day,
    recentPayments: hour,
    open,
    outbox,
    revision,
    status
  } = { ...account, ...account.usage };
  return {
    id: account.agentId,
    name: account.name,
    key: account.keyId,
    policy: packPolicy(account.policy),
    at: account.updatedAt,
    ...status === "active" ? {} : { status },
    ...unlessDefault("followed", account.followedRevision, 0),
    ...unlessDefault("policyVersion", account.policyVersion, 1),
    ...unlessDefault("mirrored", account.mirroredPolicyVersion, account.policyVersion),
    ...unlessDefault("spent", account.usage.spentCents, 0),
    ...unlessDefault("reserved", account.usage.reservedCents, 0),
    ...day.date === "" ? {} : { day: [day.date, day.amountCents, day.count] },
    ...hour.length === 0 ? {} : { instants: packInstants(hour) },
    ...unlessDefault("sequence", account.sequence, 0),
    ...open.size === 0 ? {} : { open: [...open.values()] },
    ...unlessDefault("closed", account.closed, account.sequence - open.size),
    ...unlessDefault("evicted", account.evictedThrough, 0),
    ...unlessDefault("revision", revision, 1),
    ...unlessDefault("unconfirmed", revision - confirmedRevision, 0),
    ...account.pausedAt === null ? {} : { pausedAt: account.pausedAt },
    ...outbox.length === 0 ? {} : { outbox }
  };
}
function unpackAccount(teamId, packed) {
  const { policyVersion = 1, revision = 1, sequence = 0 } = packed;
  const open = new Map((packed.open ?? []).map((each) => [each.payment.request.transactionId, each]));
  return {
    agentId: packed.id,
    teamId,
    name: packed.name,
    status: packed.status ?? "active",
    keyId: packed.key,
    followedRevision: packed.followed ?? 0,
    policy: unpackPolicy(packed.policy),
    policyVersion,
    usage: unpackUsage(packed),
    sequence,
    open,
    closed: packed.closed ?? sequence - open.size,
    evictedThrough: packed.evicted ?? 0,
    revision,
    confirmedRevision: revision - (packed.unconfirmed ?? 0),
    updatedAt: packed.at,
    mirroredPolicyVersion: packed.mirrored ?? policyVersion,
    pausedAt: packed.pausedAt ?? null,
    outbox: packed.outbox ?? []
  };
}
var packPolicy = (policy2) => [
  policy2.budgetCents,
  policy2.autoApprovalThresholdCents,
  policy2.perTransactionLimitCents,
  policy2.dailySpendLimitCents,
  policy2.hourlyVelocityLimit,
  policy2.dailyVelocityLimit
];
var unpackPolicy = ([
  budget,
  threshold = null,
  single = null,
  day = null,
  hourly = null,
  daily = null
]) => ({
  budgetCents: budget ?? 0,
  autoApprovalThresholdCents: threshold,
  perTransactionLimitCents: single,
  dailySpendLimitCents: day,
  hourlyVelocityLimit: hourly,
  dailyVelocityLimit: daily
});
function unpackUsage({ day = ["", 0, 0], instants = [], reserved = 0, spent = 0 }) {
  const [date, amountCents, count] = day;
  return {
    spentCents: spent,
    reservedCents: reserved,
    day: { date, amountCents, count },
    recentPayments: unpackInstants(instants)
  };
}
function packInstants(hour) {
  const packed = [];
  let before2 = 0;
  for (const [at, count] of hour) {
    packed.push(at - before2, count);
    before2 = at;
  }
  return packed;
}
function unpackInstants(instants) {
  const hour = [];
  let [at, through] = [0, 0];
  for (let index = 0; index + 1 < instants.length; index += 2) {
    const count = instants[index + 1] ?? 0;
    at += instants[index] ?? 0;
    through += count;
    hour.push([at, count, through]);
  }
  return hour;
}

// scripts/simulation/domain.ts
function throughJson(state) {
  const carried = JSON.parse(JSON.stringify(state));
  return carried;
}
var realDomain = {
  newLedger,
  judge: judge2,
  decidedPayment,
  initialAgentState,
  handle,
  rollOverLedger: (ledger) => unpackLedger(throughJson(packLedger(ledger))),
  rollOverAgent: throughJson
};

// scripts/simulation/trail.ts
var TRAIL_ENTRIES_MAX = 30;
var Trail = class {
  observer;
  #entries = [];
  #next = 0;
  step = 0;
  constructor(observer) {
    const note = (...what) => this.#note(...what);
    const traced = (name, tell, shown) => (...args) => {
      note(name, ...shown(...args));
      tell(...args);
    };
    this.observer = {
      agentCreated: traced("created", (...args) => observer.agentCreated(...args), all),
      agentAnswered: traced(
        "agent",
        (answered) => observer.agentAnswered(answered),
        ({ agentId, command, reply }) => [agentId, command, "\u2192", reply]
      ),
      ledgerAnswered: traced(
        "ledger",
        (...args) => observer.ledgerAnswered(...args),
        (command, reply, { now }) => [new Date(now).toISOString(), command, "\u2192", reply]
      ),
      rolledOver: traced(
        "continued as new",
        (...args) => observer.rolledOver(...args),
        (actor) => [actor]
      ),
      accountRecorded: (summary) => observer.accountRecorded(summary),
      agentRecorded: (summary) => observer.agentRecorded(summary),
      paymentRecorded: traced(
        "recorded",
        (payment) => observer.paymentRecorded(payment),
        ({ phase, request, revision, status }) => [request.transactionId, revision, status, phase]
      ),
      captured: traced("captured", (...args) => observer.captured(...args), all),
      reversed: traced("given back", (...args) => observer.reversed(...args), all),
      railAnswered: (...args) => observer.railAnswered(...args),
      clientAnswered: (...args) => observer.clientAnswered(...args),
      pauseAnswered: traced("pause answered", (...args) => observer.pauseAnswered(...args), all),
      archiveAnswered: traced(
        "archive answered",
        (...args) => observer.archiveAnswered(...args),
        (id) => [id]
      ),
      keyAnswered: traced("key answered", (...args) => observer.keyAnswered(...args), all),
      capsAnswered: traced("caps answered", (...args) => observer.capsAnswered(...args), all),
      rulesAnswered: traced("rules answered", (...args) => observer.rulesAnswered(...args), all),
      checked: traced("dry run", (...args) => observer.checked(...args), all),
      atRest: (books) => observer.atRest(books),
      broke: traced(
        "broke",
        (...args) => observer.broke(...args),
        (what, error) => [what, String(error)]
      )
    };
  }
  /** The newest last. */
  lines() {
    const inOrder3 = [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)];
    return inOrder3.map(({ step, what }) => `${String(step)} ${what.map(text).join(" ")}`);
  }
  #note(...what) {
    this.#entries[this.#next] = { step: this.step, what };
    this.#next = (this.#next + 1) % TRAIL_ENTRIES_MAX;
  }
};
var all = (...args) => args;
var text = (value) => typeof value === "string" ? value : JSON.stringify(value);

// workflows/ledger-views.ts
function accountView(ledger, { agentId, now, payment = null }, ledgerNow) {
  const account = ledger.accounts.get(agentId);
  if (account === void 0) return null;
  const { policy: policy2, policyVersion, status, teamId, usage } = account;
  const at = Math.max(now, ledgerNow);
  const team = levelOf(ledger, teamId);
  return {
    status,
    policy: policy2,
    policyVersion,
    spentCents: usage.spentCents,
    reservedCents: usage.reservedCents,
    remainingCents: remainingOf(policy2.budgetCents, usage.spentCents + usage.reservedCents),
    todayCents: spentToday(usage, at).amountCents,
    lastHourCount: countWithinHour(usage, at),
    todayCount: countToday(usage, at),
    assessment: payment === null ? null : assess(ledger, account, payment, at),
    teamRemainingCents: remainingCents(team.cap, team.totals),
    projectRemainingCents: remainingCents(ledger.project.cap, ledger.project.totals)
  };
}
var levelView = ({ cap, totals }) => ({ cap, totals });
var capsView = ({ project, teams }) => ({
  project: levelView(project),
  teams: Object.fromEntries([...teams].map(([teamId, level]) => [teamId, levelView(level)]))
});
function snapshotPage(ledger, { after: after2, limit }) {
  const { accounts, droppedAccounts } = ledger;
  const ids = [...accounts.keys()].filter((agentId) => after2 === null || agentId > after2).toSorted();
  const page = ids.slice(0, limit).flatMap((agentId) => accounts.get(agentId) ?? []);
  return {
    accounts: page.map(accountSnapshot),
    levels: levelSnapshots(ledger),
    droppedAccounts,
    hasMore: ids.length > limit
  };
}
function levelSnapshots({ accounts, project, teams }) {
  const sums = /* @__PURE__ */ new Map();
  const add = (teamId, { reservedCents, spentCents }) => {
    const sum = sums.get(teamId) ?? NO_TOTALS;
    sums.set(teamId, {
      spentCents: sum.spentCents + spentCents,
      reservedCents: sum.reservedCents + reservedCents
    });
  };
  for (const { teamId, usage } of accounts.values()) {
    add(teamId, usage);
    add(null, usage);
  }
  return [[null, project], ...teams].map(([teamId, level]) => ({
    ...levelView(level),
    teamId,
    recordedCapVersion: level.recordedCapVersion,
    rulesVersion: level.rulesVersion,
    accounts: sums.get(teamId) ?? NO_TOTALS
  }));
}
var accountSnapshot = (account) => ({
  ...summaryOf(account),
  teamId: account.teamId,
  name: account.name,
  keyId: account.keyId,
  confirmedRevision: account.confirmedRevision,
  sequence: account.sequence,
  open: [...account.open.values()].map(({ confirmedRevision, isWithdrawn = false, payment }) => ({
    payment,
    confirmedRevision,
    isWithdrawn
  }))
});

// src/payments/sending.ts
var Superseded = class extends Error {
  name = "Superseded";
};
var Fenced = class extends Error {
  name = "Fenced";
};
var RAIL_CALLS_MAX = { instant: 2, eventual: 1 };
var PERMITS_MAX = 3;
var DECISION_AGE_MAX_MS = 1e3;
function createSending({ ledgers, monotonicMs, rails }) {
  async function requestPermission2(profile, { request }) {
    const { agentId } = profile;
    const { transactionId } = request;
    const reply = await ledgers.submit(profile, { kind: "request_permission", agentId, transactionId });
    if (reply.kind !== "permission") throw new Superseded("it must not be sent any more");
    return reply.permission;
  }
  async function sendPermitted(profile, payment, permit) {
    const rail = rails[payment.request.rail];
    for (let call = 1; ; call += 1) {
      try {
        return await rail.send(profile, payment, permit);
      } catch (error) {
        if (call >= RAIL_CALLS_MAX[rail.capabilities.finality]) throw error;
      }
    }
  }
  function decidedPermission(decided) {
    if (decided === void 0 || monotonicMs() - decided.requestedMs >= DECISION_AGE_MAX_MS) return null;
    return { kind: "send", permit: decided.permit };
  }
  async function send(profile, payment, decided) {
    const { rail: name, transactionId } = payment.request;
    const rail = rails[name];
    let permission = decidedPermission(decided);
    for (let asked = 0; asked <= PERMITS_MAX; asked += 1) {
      permission ??= await requestPermission2(profile, payment);
      if (permission.kind === "withdraw") return rail.withhold(profile, payment);
      if (permission.kind === "wait") {
        await rail.fence([{ transactionId, fence: permission.fence }]);
        return rail.query(payment);
      }
      const outcome = await sendPermitted(profile, payment, permission.permit);
      if (outcome.status !== "fenced") return outcome;
      permission = null;
    }
    throw new Fenced("the agent is stopped again and again");
  }
  return { requestPermission: requestPermission2, send };
}

// src/actors/no-such-actor.ts
var NoSuchActor = class extends Error {
  name = "NoSuchActor";
  isUnavailable = true;
};

// src/actors/actor-unavailable.ts
var ActorUnavailable = class extends Error {
  name = "ActorUnavailable";
  isUnavailable = true;
};
var StaleRecords = class extends ActorUnavailable {
  name = "StaleRecords";
};

// scripts/random.ts
import { createHash, randomInt } from "node:crypto";
var SEED_MAX = 2 ** 31;
var Random = class _Random {
  #seed;
  #state;
  constructor(seed) {
    this.#seed = seed;
    this.#state = seed >>> 0;
  }
  /** Another sequence, which follows from this one's seed and the name alone. */
  fork(name) {
    const digest = createHash("sha256").update(`${String(this.#seed)}/${name}`).digest();
    return new _Random(digest.readUInt32LE(0));
  }
  /** At least 0, below 1. */
  next() {
    this.#state = this.#state + 1831565813 >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ mixed >>> 15, mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  }
  /** A whole number from `least` to `most`, both included. */
  between(least, most) {
    return least + Math.floor(this.next() * (most - least + 1));
  }
  chance(probability) {
    return this.next() < probability;
  }
  pick(items) {
    const item = items[this.between(0, items.length - 1)];
    if (item === void 0) throw new RangeError("nothing to pick from");
    return item;
  }
  shuffled(items) {
    return items.map((item) => ({ item, at: this.next() })).toSorted((one, other) => one.at - other.at).map(({ item }) => item);
  }
};

// src/domain/ledger/stale-backup.ts
function staleBackupOf({ recordedRevision, revision }, known2) {
  if (revision < Math.max(known2.ledger, known2.recorded)) return "ledger";
  return known2.isRead && known2.recorded < recordedRevision ? "records" : null;
}

// src/messages/ledger.ts
var LEDGER_BATCH_MAX = 128;
var LEDGER_CONFIRMATIONS_MAX = 128;
var NOTHING_KNOWN = { ledger: 0, recorded: 0, isRead: false };
var confirmationOf = (agentId, { outcome, revision, transactionId }) => ({ kind: "confirm", agentId, transactionId, revision, outcome });

// src/domain/ledger/due.ts
var PAUSED_POLL_MAX_MS = 36e5;
var OVERDUE_SWEEPS = 2;
var BACKOFF_DOUBLINGS_MAX = 5;
var pauseMs = ({ failures = 0 }, { sweepAfterMs }) => sweepAfterMs * 2 ** Math.min(Math.max(0, failures - 1), BACKOFF_DOUBLINGS_MAX);
function paymentDueAt({ pausedAt }, open, settings) {
  const { changedAt, confirmedRevision, dueAt, isWithdrawn, payment } = open;
  const { sweepAfterMs } = settings;
  if (dueAt !== void 0) return dueAt;
  if (isWithdrawn !== true && pausedAt !== null && payment.phase === "sending") {
    return changedAt + Math.min(Math.max(sweepAfterMs, changedAt - pausedAt), PAUSED_POLL_MAX_MS);
  }
  if (confirmedRevision < payment.revision) return changedAt + pauseMs(open, settings);
  if (isExecutedByApproval(payment))
    return changedAt + Math.max(OVERDUE_SWEEPS * sweepAfterMs, pauseMs(open, settings));
  const expiresAt = payment.phase === "held" ? payment.approval?.expiresAt : void 0;
  return expiresAt === void 0 ? Infinity : Math.max(expiresAt, changedAt) + OVERDUE_SWEEPS * sweepAfterMs;
}
var isExecutedByApproval = ({ executor, phase }) => executor === "approval" && phase === "sending";
var recordDueAt = (account, { sweepAfterMs }) => account.confirmedRevision < account.revision ? account.updatedAt + sweepAfterMs : Infinity;
function accountDueAt(account, settings) {
  let soonest = recordDueAt(account, settings);
  for (const open of account.open.values())
    soonest = Math.min(soonest, paymentDueAt(account, open, settings));
  return soonest;
}
var capDueAt = (level, { sweepAfterMs }) => level.recordedCapVersion < level.cap.version ? level.capChangedAt + sweepAfterMs : Infinity;
function dueNow(ledger, settings, now) {
  const due = [];
  let nextAt = Infinity;
  const note = (at, what) => {
    if (at <= now) due.push(what);
    else nextAt = Math.min(nextAt, at);
  };
  note(capDueAt(ledger.project, settings), { kind: "cap", teamId: null });
  for (const [teamId, level] of ledger.teams) note(capDueAt(level, settings), { kind: "cap", teamId });
  for (const account of ledger.accounts.values()) {
    const { agentId } = account;
    const isIdle = account.open.size === 0 && account.confirmedRevision >= account.revision;
    if (isIdle) continue;
    note(recordDueAt(account, settings), { kind: "record", agentId });
    for (const [transactionId, open] of account.open) {
      const { rail } = open.payment.request;
      note(paymentDueAt(account, open, settings), { kind: "payment", agentId, transactionId, rail });
    }
  }
  return { due, nextAt };
}
function postpone(account, transactionId, now, reason) {
  const open = account.open.get(transactionId);
  if (open === void 0) return;
  const { dueAt: _dueAt, failures = 0, ...rest } = open;
  const tried = reason === "failed" ? { failures: failures + 1 } : {};
  account.open.set(transactionId, { ...rest, ...tried, changedAt: now });
}
function expedite(account, transactionId, { sweepAfterMs }) {
  const open = account.open.get(transactionId);
  if (open?.failures === void 0 || open.isExpedited === true) return Infinity;
  const dueAt = open.changedAt + sweepAfterMs;
  account.open.set(transactionId, { ...open, dueAt, isExpedited: true });
  return dueAt;
}

// workflows/ledger-sweeps.ts
var PAYMENTS_AT_ONCE_MAX = 20;
var RECORDS_AT_ONCE_MAX = 100;
var LIMITS_AT_ONCE_MAX = 50;
var SWEEPS_MAX = { ...perRail(() => 6), record: 2, cap: 1, limits: 2 };
var BACKOFF_DOUBLINGS_MAX2 = 6;
var LedgerSweeps = class {
  #ledger;
  #settings;
  #ports;
  /** What is being swept in this run, and in how many activities. */
  #sweeping = /* @__PURE__ */ new Set();
  #running = { ...perRail(() => 0), record: 0, cap: 0, limits: 0 };
  #backoffs = /* @__PURE__ */ new Map();
  /** Payments that have failed, with their agents, until they are known to have succeeded. */
  #failed = perRail(() => /* @__PURE__ */ new Map());
  /** Accounts whose policy is still to be mirrored into their wallets' limits. */
  #unmirrored = /* @__PURE__ */ new Set();
  /** No later than when something is due; found out exactly by looking. */
  nextAt = 0;
  constructor(ledger, settings, ports) {
    this.#ports = ports;
    this.#ledger = ledger;
    this.#settings = settings;
    for (const account of ledger.accounts.values()) {
      this.#noteLimits(account);
      for (const [id, { failures, payment }] of account.open)
        if (failures !== void 0) this.#failed[payment.request.rail].set(id, account.agentId);
    }
  }
  /** An account has changed, and has something due by then. */
  expect(dueAt, account) {
    this.#noteLimits(account);
    this.nextAt = Math.min(this.nextAt, this.#unmirrored.has(account.agentId) ? 0 : dueAt);
  }
  /** Something may be due sooner than `nextAt`. */
  recheck() {
    this.nextAt = 0;
  }
  #noteLimits({ agentId, mirroredPolicyVersion, policyVersion, status }) {
    if (mirroredPolicyVersion < policyVersion && status !== "closed") this.#unmirrored.add(agentId);
    else this.#unmirrored.delete(agentId);
  }
  /** Starts activities for what is due by now. */
  sweep(now) {
    const { due, nextAt } = dueNow(this.#ledger, this.#settings, now);
    this.nextAt = nextAt;
    const limits = [...this.#unmirrored].map((agentId) => ({ kind: "limits", agentId }));
    const waiting = [...due, ...limits].filter((each) => this.#isFree(nameOf2(each), now));
    const payments = waiting.filter(isPayment);
    for (const rail of RAILS) {
      const own = payments.filter((each) => each.rail === rail);
      this.#inBatches(own, PAYMENTS_AT_ONCE_MAX, (some) => this.#payments(rail, some));
    }
    this.#inBatches(waiting.filter(isRecord), RECORDS_AT_ONCE_MAX, (some) => this.#records(some));
    this.#inBatches(waiting.filter(isCap), RECORDS_AT_ONCE_MAX, (some) => this.#caps(some));
    this.#inBatches(waiting.filter(isLimits), LIMITS_AT_ONCE_MAX, (some) => this.#limits(some));
  }
  /** Whether it is neither being swept nor backing off; if it backs off, it is due again then. */
  #isFree(name, now) {
    if (this.#sweeping.has(name)) return false;
    const until = this.#backoffs.get(name)?.until ?? 0;
    if (until <= now) return true;
    this.nextAt = Math.min(this.nextAt, until);
    return false;
  }
  #inBatches(due, size, work) {
    for (let from = 0; from < due.length; from += size) {
      const some = due.slice(from, from + size);
      const [first] = some;
      if (first === void 0 || this.#running[poolOf(first)] >= SWEEPS_MAX[poolOf(first)]) return;
      this.#run(poolOf(first), some, () => work(some));
    }
  }
  #run(pool, some, work) {
    const names = some.map(nameOf2);
    for (const name of names) this.#sweeping.add(name);
    this.#running[pool] += 1;
    void work().catch((error) => {
      this.#ports.onFailed(names, error);
      if (!some.every(isPayment)) this.#note(names, NONE);
    }).finally(() => {
      for (const name of names) this.#sweeping.delete(name);
      this.#running[pool] -= 1;
      if (!this.#ports.isEnding()) this.sweep(this.#ports.now());
      this.emitCommand();
    });
  }
  /** A command without an effect, since no task but an update's own may end without one. */
  emitCommand() {
    this.#ports.emitCommand();
  }
  /** Items that failed back off, the longer the more often they have failed. */
  #note(tried, done) {
    for (const name of tried) {
      if (done.has(name)) {
        this.#backoffs.delete(name);
        continue;
      }
      const failures = (this.#backoffs.get(name)?.failures ?? 0) + 1;
      const pauseMs2 = this.#settings.sweepAfterMs * 2 ** Math.min(failures - 1, BACKOFF_DOUBLINGS_MAX2);
      this.#backoffs.set(name, { failures, until: this.#ports.now() + pauseMs2 });
    }
  }
  /** A rail has responded, here or to a server that confirms a payment: its failed payments are retried sooner. */
  railAnswered(rail) {
    for (const [transactionId, agentId] of this.#failed[rail]) {
      const account = this.#ledger.accounts.get(agentId);
      if (account === void 0) continue;
      this.nextAt = Math.min(this.nextAt, expedite(account, transactionId, this.#settings));
    }
    this.#failed[rail].clear();
  }
  async #payments(rail, due) {
    const payments = due.flatMap(({ agentId, transactionId }) => this.#toExecute(agentId, transactionId));
    if (payments.length === 0) return;
    const done = await this.#ports.activities.executePayments(rail, { payments }).catch((error) => {
      for (const { agentId, transactionId } of due) this.#postpone(agentId, transactionId, "failed", rail);
      throw error;
    });
    if (done.some(({ outcome }) => outcome !== null)) this.railAnswered(rail);
    payments.forEach(({ profile: { agentId }, payment: { request } }, index) => {
      const result = done[index];
      if (result === void 0 || result.revision === 0) {
        const reason = result?.hasFailed === true ? "failed" : "waits";
        this.#postpone(agentId, request.transactionId, reason, rail);
      }
      if (result !== void 0) this.#ports.judge(confirmationOf(agentId, result));
    });
  }
  #toExecute(agentId, transactionId) {
    const overdue = this.#overdue(agentId, transactionId);
    if (overdue === void 0) return [];
    const isOverdue = overdue.confirmedRevision >= overdue.payment.revision;
    if (isOverdue && overdue.payment.phase === "held")
      this.#ports.judge({ kind: "expire", agentId, transactionId });
    const account = this.#ledger.accounts.get(agentId);
    const open = account?.open.get(transactionId);
    if (account === void 0 || open === void 0) return [];
    const { dueAt: _dueAt, ...rest } = open;
    account.open.set(transactionId, rest);
    const isTakeover = isOverdue && isExecutedByApproval(open.payment);
    const executor = isTakeover ? { executor: "approval" } : {};
    return [{ profile: profileIn(this.#ledger, account), payment: open.payment, ...executor }];
  }
  #overdue(agentId, transactionId) {
    return this.#ledger.accounts.get(agentId)?.open.get(transactionId);
  }
  #postpone(agentId, transactionId, reason, rail) {
    const account = this.#ledger.accounts.get(agentId);
    if (account === void 0) return;
    postpone(account, transactionId, this.#ports.now(), reason);
    if (reason === "failed" && account.open.get(transactionId)?.isExpedited !== true)
      this.#failed[rail].set(transactionId, agentId);
  }
  async #records(due) {
    const accounts = due.flatMap(({ agentId }) => this.#ledger.accounts.get(agentId) ?? []).map(summaryOf);
    if (accounts.length === 0) return;
    const written = new Set(await this.#ports.activities.writeAccounts({ accounts }));
    const records = accounts.filter(({ agentId }) => written.has(agentId)).map(recordOf);
    this.#ports.judge({ kind: "confirm_records", records });
    this.#note(due.map(nameOf2), new Set(records.map(({ agentId }) => nameOf2({ kind: "record", agentId }))));
  }
  async #caps(due) {
    const { projectId } = this.#ledger;
    const caps = due.map(({ teamId }) => {
      const level = teamId === null ? this.#ledger.project : levelOf(this.#ledger, teamId);
      return { teamId, cap: level.cap };
    });
    await this.#ports.activities.writeCaps({ projectId, caps });
    const recorded = caps.map(({ teamId, cap: { version } }) => ({ teamId, version }));
    this.#ports.judge({ kind: "confirm_caps", caps: recorded });
    const names = due.map(nameOf2);
    this.#note(names, new Set(names));
  }
  /** A changed policy is mirrored at once, concurrently with payments: none of them waits for it. */
  async #limits(due) {
    const limits = due.flatMap(({ agentId }) => {
      const account = this.#ledger.accounts.get(agentId);
      if (account === void 0) return [];
      const { policy: policy2, policyVersion } = account;
      return [{ agentId, policy: policy2, policyVersion }];
    });
    for (const { agentId } of due) this.#unmirrored.delete(agentId);
    try {
      const mirrored = limits.length === 0 ? [] : await this.#ports.activities.mirrorLimits({ limits });
      const isMirrored = new Set(mirrored);
      for (const { agentId, policyVersion } of limits) {
        if (isMirrored.has(agentId)) this.#ports.judge({ kind: "confirm_limits", agentId, policyVersion });
      }
      this.#note(due.map(nameOf2), new Set(mirrored.map((agentId) => nameOf2({ kind: "limits", agentId }))));
    } finally {
      for (const { agentId } of due) {
        const account = this.#ledger.accounts.get(agentId);
        if (account !== void 0) this.#noteLimits(account);
      }
    }
  }
};
var NONE = /* @__PURE__ */ new Set();
var recordOf = ({ agentId, revision }) => ({ agentId, revision });
var isPayment = (due) => due.kind === "payment";
var isRecord = (due) => due.kind === "record";
var isCap = (due) => due.kind === "cap";
var isLimits = (due) => due.kind === "limits";
var poolOf = (due) => due.kind === "payment" ? due.rail : due.kind;
function nameOf2(due) {
  const kind = due.kind;
  if (due.kind === "payment") return `${kind} ${due.transactionId}`;
  return due.kind === "cap" ? `${kind} ${due.teamId ?? ""}` : `${kind} ${due.agentId}`;
}

// workflows/ledger-actor.ts
var LedgerActor = class {
  ledger;
  sweeps;
  #settings;
  #judge;
  constructor(ledger, settings, ports) {
    this.ledger = ledger;
    this.#settings = settings;
    this.#judge = ports.judge;
    this.sweeps = new LedgerSweeps(ledger, settings, ports);
  }
  /** A confirmed outcome proves that the rail responds. */
  #noteAnswer(command) {
    if (command.kind !== "confirm" || command.outcome === null) return;
    const open = this.ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
    if (open !== void 0) this.sweeps.railAnswered(open.payment.request.rail);
  }
  /** Judges a batch. Synchronous: nothing interleaves, and the answer is sent with the decision's history. */
  submit(commands3, known2 = NOTHING_KNOWN) {
    const { ledger, sweeps } = this;
    ledger.revision += 1;
    ledger.recordedRevision = Math.max(ledger.recordedRevision, known2.recorded);
    ledger.touched.clear();
    for (const command of commands3) this.#noteAnswer(command);
    const replies = commands3.map((command) => this.#judge(command));
    const touched = [...ledger.touched].flatMap((agentId) => ledger.accounts.get(agentId) ?? []);
    for (const account of touched) sweeps.expect(accountDueAt(account, this.#settings), account);
    if (replies.some(({ kind }) => kind === "replaced")) sweeps.recheck();
    return {
      revision: ledger.revision,
      replies,
      accounts: touched.filter(({ confirmedRevision, revision }) => confirmedRevision < revision).map(summaryOf),
      closed: Object.fromEntries(touched.filter(hasEvicted).map(({ agentId, closed }) => [agentId, closed]))
    };
  }
};
var hasEvicted = ({ evictedThrough }) => evictedThrough > 0;

// scripts/simulation/actors.ts
var SWEEP_AFTER_MS = 1e4;
var SimulatedLedger = class {
  #dependencies;
  #actor;
  /** Raised by continue-as-new: what an earlier run waited for is nothing to this one. */
  #run = 0;
  #armedAt = Infinity;
  sweeps = 0;
  constructor(dependencies, ledger) {
    this.#dependencies = dependencies;
    this.#actor = this.#actorOf(ledger);
    this.#arm();
  }
  get ledger() {
    return this.#actor.ledger;
  }
  submit(commands3, known2 = NOTHING_KNOWN) {
    const stale = staleBackupOf(this.ledger, known2);
    if (stale === "records") throw new StaleRecords("the records were read too early");
    if (stale === "ledger") throw new Error("the ledger would be from a backup");
    const result = this.#actor.submit(commands3, known2);
    this.#arm();
    return result;
  }
  /** The clock was put right: something may be due sooner. */
  recheck() {
    this.#arm();
  }
  /** The ledger goes on as it was packed, and the sweeps of the run before are dropped. */
  continueAsNew() {
    const { domain, observer } = this.#dependencies;
    const before2 = this.ledger;
    before2.touched.clear();
    const after2 = domain.rollOverLedger(before2);
    observer.rolledOver("the ledger", shownOf(before2), shownOf(after2));
    this.#run += 1;
    this.#armedAt = Infinity;
    this.#actor = this.#actorOf(after2);
    this.#arm();
  }
  #actorOf(ledger) {
    const { activities, now } = this.#dependencies;
    const run = this.#run;
    const judge3 = (command) => (
      // Of a run that is over nothing counts any more.
      run === this.#run ? this.#judge(ledger, command) : { kind: "confirmed" }
    );
    return new LedgerActor(
      ledger,
      { sweepAfterMs: SWEEP_AFTER_MS },
      {
        activities: { ...activities, executePayments: (_rail, input) => activities.executePayments(input) },
        judge: judge3,
        now,
        onFailed: () => void 0,
        isEnding: () => run !== this.#run,
        emitCommand: () => run === this.#run && this.#arm()
      }
    );
  }
  #judge(ledger, command) {
    const { domain, now, observer } = this.#dependencies;
    const at = now();
    const reply = domain.judge(ledger, command, at);
    const account = "agentId" in command ? accountView(ledger, { agentId: command.agentId, now: at }, at) : null;
    observer.ledgerAnswered(command, reply, {
      now: at,
      bounds: ledger.bounds,
      caps: capsView(ledger),
      account
    });
    return reply;
  }
  /** A timer for what is due next; an earlier one that fires in vain does no harm. */
  #arm() {
    const { sweeps } = this.#actor;
    const { now, timeline } = this.#dependencies;
    if (sweeps.nextAt === Infinity) return;
    const waitMs = Math.max(1, sweeps.nextAt - now());
    const at = timeline.now + waitMs;
    if (at >= this.#armedAt) return;
    this.#armedAt = at;
    const run = this.#run;
    const isIdle = waitMs > 2 * SWEEP_AFTER_MS + 1e3;
    timeline.after(
      waitMs,
      () => {
        if (run !== this.#run) return;
        this.#armedAt = Infinity;
        this.sweeps += 1;
        sweeps.sweep(now());
        this.#arm();
      },
      isIdle
    );
  }
};
var shownOf = (ledger) => ({
  caps: capsView(ledger),
  keys: ledger.keys.byAgent,
  openPayments: ledger.openPayments,
  accounts: Object.fromEntries(
    [...ledger.accounts].map(([agentId, { usage: _usage, ...account }]) => [agentId, account])
  )
});
var DUTIES = ["window", "ledger", "record", "wallet"];
var SimulatedAgent = class {
  #dependencies;
  #onEnded;
  state;
  #running = /* @__PURE__ */ new Set();
  #run = 0;
  #armedAt = Infinity;
  hasEnded = false;
  constructor(dependencies, state, onEnded) {
    this.#dependencies = dependencies;
    this.#onEnded = onEnded;
    this.state = state;
    this.#arm();
  }
  submit(commands3) {
    const replies = commands3.map((command) => this.#handle(command));
    this.#after();
    const { confirmedRevision, profile, revision } = this.state;
    return {
      replies,
      unrecorded: confirmedRevision < revision ? summarize(this.state) : null,
      unfollowed: isUnfollowed(this.state) ? { agent: profile, followed: followedOf(this.state) } : null
    };
  }
  continueAsNew() {
    const before2 = this.state;
    this.state = this.#dependencies.domain.rollOverAgent(before2);
    this.#dependencies.observer.rolledOver(before2.profile.agentId, before2, this.state);
    this.#running.clear();
    this.#run += 1;
    this.#armedAt = Infinity;
    this.#arm();
  }
  /** The clock was put right: something may be due sooner. */
  recheck() {
    this.#arm();
  }
  #handle(command) {
    const { domain, now, observer } = this.#dependencies;
    const at = now();
    const reply = domain.handle(this.state, command, at);
    const { agentId } = this.state.profile;
    observer.agentAnswered({ agentId, command, reply, summary: summarize(this.state), now: at });
    return reply;
  }
  #after() {
    if (!this.hasEnded && this.#running.size === 0 && isFinished(this.state)) {
      this.hasEnded = true;
      this.#run += 1;
      this.#onEnded();
    } else this.#arm();
  }
  #dueAt(duty) {
    if (this.#running.has(duty) || this.hasEnded) return Infinity;
    const { access, archivedAt, confirmedRevision, revision, updatedAt, walletDetached } = this.state;
    switch (duty) {
      case "window":
        return access.bundled.erased ? Infinity : access.bundled.deliverableUntil;
      case "ledger":
        return isUnfollowed(this.state) ? updatedAt + SWEEP_AFTER_MS : Infinity;
      case "record":
        return confirmedRevision < revision ? updatedAt + SWEEP_AFTER_MS : Infinity;
      case "wallet":
        return archivedAt === null || walletDetached ? Infinity : archivedAt + SWEEP_AFTER_MS;
    }
  }
  #arm() {
    const { now, timeline } = this.#dependencies;
    const dueAt = Math.min(...DUTIES.map((duty) => this.#dueAt(duty)));
    if (dueAt === Infinity) return;
    const waitMs = Math.max(1, dueAt - now());
    if (timeline.now + waitMs >= this.#armedAt) return;
    this.#armedAt = timeline.now + waitMs;
    const run = this.#run;
    timeline.after(waitMs, () => {
      if (run !== this.#run) return;
      this.#armedAt = Infinity;
      for (const duty of DUTIES) if (this.#dueAt(duty) <= now()) void this.#see(run, duty);
      this.#arm();
    });
  }
  async #see(run, duty) {
    this.#running.add(duty);
    try {
      await this.#done(run, duty);
    } catch {
      if (run === this.#run) this.state.updatedAt = this.#dependencies.now();
    }
    if (run !== this.#run) return;
    this.#running.delete(duty);
    this.#after();
  }
  async #done(run, duty) {
    const { activities } = this.#dependencies;
    const { profile } = this.state;
    const tell = (command) => {
      if (run === this.#run) this.#handle(command);
    };
    switch (duty) {
      case "window":
        await activities.closeDeliveryWindow({ agentId: profile.agentId });
        if (run === this.#run) this.state.access.bundled.erased = true;
        return;
      case "ledger": {
        const followed2 = followedOf(this.state);
        await activities.followInLedger({ agent: profile, followed: followed2 });
        return tell({ kind: "confirm_followed", revision: followed2.revision });
      }
      case "record": {
        const summary = summarize(this.state);
        await activities.writeAgent({ summary });
        return tell({ kind: "confirm_record", revision: summary.revision });
      }
      case "wallet":
        await activities.detachWallet({ profile });
        return tell({ kind: "confirm_detached" });
    }
  }
};

// src/store/records.ts
function approvalDocument(profile, payment) {
  const { approval: approval2, request } = payment;
  if (approval2 === null) return null;
  return {
    _id: approval2.id,
    transactionId: request.transactionId,
    organizationId: profile.organizationId,
    projectId: profile.projectId,
    teamId: profile.teamId,
    agentId: profile.agentId,
    agentName: profile.name,
    amountCents: request.amountCents,
    currency: request.currency,
    rail: request.rail,
    recipient: request.recipient,
    purpose: request.purpose,
    budgetContext: approval2.budgetContext,
    flaggedByRuleTypes: [...approval2.flaggedByRuleTypes],
    createdAt: new Date(payment.createdAt),
    expiresAt: new Date(approval2.expiresAt),
    state: approval2.resolution === null ? "pending" : "completed",
    resolution: approval2.resolution,
    resolvedAt: dateOrNull(approval2.resolvedAt),
    resolvedBy: approval2.resolvedBy,
    feedback: approval2.feedback,
    revision: payment.revision,
    ledgerState: { proof: approval2.proof ?? null, policyVersion: approval2.policyVersion ?? null }
  };
}
var dateOrNull = (at) => at === null ? null : new Date(at);

// scripts/simulation/counterparts.ts
var FATES = ["settle", "decline", "slow", "bounce", "reverse", "clear", "flaky"];
var recipientOf = ({ fate, afterMs }) => `${fate}-${String(afterMs)}`;
function fateOf(recipient) {
  const [name, after2] = recipient.split("-");
  const fate = FATES.find((known2) => known2 === name);
  if (fate === void 0) throw new Error(`no fate for ${recipient}`);
  return { fate, afterMs: Number(after2 ?? 0) };
}
var LineBroken = class extends Error {
  name = "LineBroken";
};
var DECLINED = { status: "failed", code: "CARD_DECLINED", reason: "Declined." };
var WITHHELD = { status: "withheld" };
var EMPTY = { status: "failed", code: "INSUFFICIENT_FUNDS", reason: "Empty." };
var isCaptured = ({ fate, isReversed }) => fate !== "bounce" && fate !== "withheld" && !isReversed;
var Processor = class {
  #entries = /* @__PURE__ */ new Map();
  #fences = /* @__PURE__ */ new Map();
  #timeline;
  #observer;
  captures = 0;
  declines = 0;
  fenced = 0;
  reversals = 0;
  constructor(timeline, observer) {
    this.#timeline = timeline;
    this.#observer = observer;
  }
  /** Nothing is charged that is not there yet under a permit below this. */
  fence({ fence, transactionId }) {
    this.#fences.set(transactionId, Math.max(fence, this.#fences.get(transactionId) ?? 0));
  }
  charge({ request }, permit) {
    const { amountCents, recipient, transactionId } = request;
    const known2 = this.query(transactionId);
    if (known2 !== null) return known2;
    if ((this.#fences.get(transactionId) ?? 0) > permit) {
      this.fenced += 1;
      return { status: "fenced" };
    }
    const { afterMs, fate } = fateOf(recipient);
    if (fate === "decline") {
      this.declines += 1;
      return this.#answered(transactionId, DECLINED);
    }
    const changesAt = this.#timeline.now + afterMs;
    this.#entries.set(transactionId, { fate, amountCents, changesAt, isReversed: false });
    if (fate !== "bounce") {
      this.captures += 1;
      this.#observer.captured(transactionId, amountCents);
    }
    if (fate === "flaky") throw new LineBroken(transactionId);
    return this.query(transactionId) ?? DECLINED;
  }
  /** What is not there yet is never to come. */
  withhold({ request }) {
    const { amountCents, recipient, transactionId } = request;
    const known2 = this.query(transactionId);
    if (known2 !== null) return known2;
    if (fateOf(recipient).fate === "decline") return this.#answered(transactionId, DECLINED);
    this.#entries.set(transactionId, { fate: "withheld", amountCents, changesAt: 0, isReversed: false });
    return this.#answered(transactionId, WITHHELD);
  }
  /** What has become of a payment; null when it was never sent. */
  query(transactionId) {
    const entry = this.#entries.get(transactionId);
    return entry === void 0 ? null : this.#answered(transactionId, this.#outcome(transactionId, entry));
  }
  /** Cents taken and kept, by transaction. */
  captured() {
    const captured = [...this.#entries].filter(([, entry]) => isCaptured(entry));
    return new Map(captured.map(([transactionId, { amountCents }]) => [transactionId, amountCents]));
  }
  #outcome(transactionId, entry) {
    const hasTurned = this.#timeline.now >= entry.changesAt;
    switch (entry.fate) {
      case "slow":
        return hasTurned ? { status: "settled", final: true } : { status: "pending" };
      case "bounce":
        return hasTurned ? EMPTY : { status: "pending" };
      case "clear":
        return { status: "settled", final: hasTurned };
      case "reverse":
        if (!hasTurned) return { status: "settled", final: false };
        if (!entry.isReversed) {
          entry.isReversed = true;
          this.reversals += 1;
          this.#observer.reversed(transactionId);
        }
        return { status: "reversed" };
      case "decline":
        return DECLINED;
      case "withheld":
        return WITHHELD;
      case "settle":
      case "flaky":
        return { status: "settled", final: true };
    }
  }
  #answered(transactionId, outcome) {
    this.#observer.railAnswered(transactionId, outcome);
    return outcome;
  }
};
var ENDED = ["denied", "failed", "expired"];
var Records = class {
  payments = /* @__PURE__ */ new Map();
  agents = /* @__PURE__ */ new Map();
  caps = /* @__PURE__ */ new Map();
  rules = /* @__PURE__ */ new Map();
  /** How far the ledger had come, as far as any process was answered. */
  ledgerRevision = 0;
  /** Payments whose approval's record is pending, as people see them, with their agents. */
  pending = /* @__PURE__ */ new Map();
  #approvals = /* @__PURE__ */ new Map();
  /** By agent and idempotency key. */
  #byKey = /* @__PURE__ */ new Map();
  #observer;
  constructor(observer) {
    this.#observer = observer;
  }
  writeLedgerRevision(revision) {
    this.ledgerRevision = Math.max(this.ledgerRevision, revision);
  }
  writePayment(profile, payment) {
    const { keyHash, transactionId } = payment.request;
    const known2 = this.payments.get(transactionId);
    this.#observer.paymentRecorded(payment);
    this.#writeApproval(profile, payment);
    this.#byKey.set(`${profile.agentId} ${keyHash}`, transactionId);
    if (known2 === void 0 || known2.revision < payment.revision) this.payments.set(transactionId, payment);
  }
  /** Of a payment that has ended without being paid, which it was among its agent's; null: it has not. */
  endOf(transactionId) {
    const payment = this.payments.get(transactionId);
    const isEnded = payment !== void 0 && ENDED.includes(payment.status);
    return isEnded ? { sequence: payment.sequence } : null;
  }
  under(agentId, keyHash) {
    return this.payments.get(this.#byKey.get(`${agentId} ${keyHash}`) ?? "");
  }
  /** When the newest payment of this fingerprint was made that was not denied. */
  newestSimilarAt(agentId, fingerprint) {
    let newest = null;
    for (const [name, transactionId] of this.#byKey) {
      if (!name.startsWith(`${agentId} `)) continue;
      const payment = this.payments.get(transactionId);
      const isSimilar = payment?.status !== "denied" && payment?.request.fingerprint === fingerprint;
      if (isSimilar) newest = Math.max(newest ?? -Infinity, payment.createdAt);
    }
    return newest;
  }
  writeAccount(account) {
    const known2 = this.#agent(account.agentId);
    this.#observer.accountRecorded(account);
    if (account.revision > known2.account.revision) this.agents.set(account.agentId, { ...known2, account });
  }
  writeAgentRecord(life) {
    const known2 = this.#agent(life.agentId);
    this.#observer.agentRecorded(life);
    if (life.revision > known2.life.revision) this.agents.set(life.agentId, { ...known2, life });
  }
  writeCaps(caps) {
    for (const { cap, teamId } of caps)
      if (cap.version > this.cap(teamId).version) this.caps.set(teamId, cap);
  }
  cap(teamId) {
    return this.caps.get(teamId) ?? NO_CAP;
  }
  #agent(agentId) {
    const known2 = this.agents.get(agentId);
    if (known2 === void 0) throw new Error(`agent ${agentId} has no record`);
    return known2;
  }
  #writeApproval(profile, payment) {
    const approval2 = approvalDocument(profile, payment);
    if (approval2 === null || (this.#approvals.get(approval2._id) ?? 0) >= approval2.revision) return;
    this.#approvals.set(approval2._id, approval2.revision);
    if (approval2.state === "pending") this.pending.set(approval2.transactionId, profile.agentId);
    else this.pending.delete(approval2.transactionId);
  }
};

// scripts/simulation/network.ts
var Unavailable = class extends Error {
  name = "Unavailable";
};
var CALL_DEADLINE_MS = 4e3;
var DELAY_MAX_MS = 12e4;
var CLEAR = { lost: 0, late: 0, twice: 0 };
var Host = class {
  name;
  #ends = /* @__PURE__ */ new Set();
  isAlive = true;
  constructor(name) {
    this.name = name;
  }
  kill() {
    this.isAlive = false;
    for (const end2 of this.#ends) end2();
    this.#ends.clear();
  }
  /** For a caller outside of this process: its work, or `Unavailable` when the process dies over it. */
  serve(work) {
    return new Promise((resolve3, reject) => {
      if (!this.isAlive) return reject(new Unavailable(`${this.name} is down`));
      const end2 = () => reject(new Unavailable(`${this.name} died`));
      this.#ends.add(end2);
      work().then(resolve3, reject).finally(() => this.#ends.delete(end2));
    });
  }
};
var Network = class {
  #timeline;
  #random;
  weather;
  messages = 0;
  constructor(timeline, random, weather) {
    this.#timeline = timeline;
    this.#random = random;
    this.weather = weather;
  }
  /** Has work done elsewhere; throws `Unavailable` when its answer does not come in time, done or not. */
  call(host, work) {
    return new Promise((resolve3, reject) => {
      if (!host.isAlive) return;
      const { late, lost, twice } = this.weather;
      const random = this.#random;
      const there = this.#delay(late);
      const back = this.#delay(late);
      const requestLost = random.chance(lost / 2);
      const answerLost = requestLost || random.chance(lost / 2) || there + back > CALL_DEADLINE_MS;
      const deliver = () => {
        this.messages += 1;
        const answer = attempt(work);
        if (answerLost) return;
        this.#timeline.after(back, () => {
          if (!host.isAlive) return;
          if (answer.ok) resolve3(answer.value);
          else reject(answer.error);
        });
      };
      const again = () => {
        this.messages += 1;
        attempt(work);
      };
      if (!requestLost) this.#timeline.after(there, deliver);
      if (!requestLost && random.chance(twice)) this.#timeline.after(there + this.#delay(0.5), again);
      if (answerLost) {
        this.#timeline.after(CALL_DEADLINE_MS, () => {
          if (host.isAlive) reject(new Unavailable("no answer in time"));
        });
      }
    });
  }
  /** A pause in a process; never ends in one that dies over it. */
  sleep(host, ms) {
    return new Promise((resolve3) => {
      this.#timeline.after(ms, () => {
        if (host.isAlive) resolve3();
      });
    });
  }
  #delay(late) {
    const random = this.#random;
    if (!random.chance(late)) return random.between(1, 4);
    return random.chance(0.1) ? random.between(1e3, DELAY_MAX_MS) : random.between(5, 2e3);
  }
};
function attempt(work) {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    return { ok: false, error };
  }
}

// src/actors/account-recorder.ts
var accountRecorder = ({ agents, projections }) => async (summary) => {
  await Promise.all([projections.writeAccount(summary), followStatus2(agents, summary)]);
};
async function followStatus2(agents, { agentId, events, revision, status }) {
  if (events.length === 0 || status === "closed") return;
  try {
    await agents.submit(agentId, { kind: "follow_status", status, revision });
  } catch (error) {
    if (!(error instanceof NoSuchActor)) throw error;
  }
}

// src/domain/ledger/forged.ts
var FORGED = {
  status: "failed",
  code: "RAIL_UNAVAILABLE",
  reason: "It was not decided on through this service, so nothing was paid."
};
function withoutResolver(payment) {
  const { approval: approval2, denial } = payment;
  if (approval2 === null) return payment;
  const unnamed = { ...approval2, resolvedBy: null, feedback: null, isForged: true };
  const isDenial2 = denial?.code === "APPROVAL_DENIED";
  return {
    ...payment,
    approval: unnamed,
    denial: isDenial2 ? { ...denial, reason: FORGED.reason } : denial
  };
}

// src/payments/effects.ts
function createPaymentEffects(dependencies) {
  const { ledgers, proofs, projections, publisher, workflows, clock } = dependencies;
  const sending = createSending(dependencies);
  function forgedIn(profile, payment) {
    if (!proofs.isAccepted(profile, payment)) return "payment";
    return proofs.isResolvedAsNamed(profile, payment) ? null : "decision";
  }
  function shown(profile, payment) {
    const forged = forgedIn(profile, payment);
    if (forged === "payment") return null;
    return forged === null ? payment : withoutResolver(payment);
  }
  async function refuse(profile, payment, what, keep) {
    proofs.onForged(what, profile, payment);
    const { agentId } = profile;
    const { transactionId } = payment.request;
    if (payment.phase === "held") {
      const reply2 = await ledgers.submit(profile, { kind: "cancel", agentId, transactionId });
      const ended2 = reply2.kind === "payment" ? reply2.payment : payment;
      return { transactionId, revision: ended2.revision, outcome: null, payment: ended2 };
    }
    const outcome = payment.phase === "done" ? null : { result: FORGED, at: clock().getTime() };
    const ended = outcome === null ? payment : settle(payment, outcome.result, outcome.at);
    const done = { transactionId, revision: ended.revision, outcome, payment: withoutResolver(ended) };
    await release(profile, payment, done);
    const reply = await ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
    const isActual = reply.kind === "payment" && reply.payment.revision === ended.revision;
    if (what === "decision" && isActual) {
      await Promise.all([workflows.notifyApproval(profile, done.payment), keep(profile, ended)]);
    }
    return done;
  }
  async function notifyWorkflows(profile, payment) {
    if (payment.phase === "held") await workflows.startApproval(profile, payment);
    if (leavesHold(payment)) await workflows.notifyApproval(profile, payment);
    if (payment.phase === "following") await workflows.startSettlement(profile, payment);
  }
  async function record(profile, payment) {
    const recorded = shown(profile, payment);
    if (recorded !== null) await projections.writePayment(profile, recorded);
  }
  async function publish(profile, payment, when) {
    const visible = shown(profile, payment);
    if (visible !== null) await publisher.publish(profile, visible, when);
  }
  async function recordAndPublish(profile, payment) {
    await Promise.all([record(profile, payment), publish(profile, payment, "now")]);
  }
  async function release(profile, before2, done) {
    if (!freesMoney(before2, done.payment)) return;
    await ledgers.submit(profile, { ...confirmationOf(profile.agentId, done), revision: 0 });
  }
  const executeWith = (keep) => async (profile, before2, executor, { decided } = {}) => {
    const forged = forgedIn(profile, before2);
    if (forged !== null) return refuse(profile, before2, forged, keep);
    const turn = before2.phase === "sending" && before2.executor === executor;
    if (turn && decided === void 0) {
      const ended = await projections.endOf(before2.request.transactionId);
      if (ended !== null && ended.sequence !== before2.sequence)
        return refuse(profile, before2, "payment", keep);
      if (ended !== null) throw new Superseded("its record shows that it ended unpaid");
    }
    const result = turn ? await sending.send(profile, before2, decided) : null;
    const outcome = result === null ? null : { result, at: clock().getTime() };
    const payment = outcome === null ? before2 : settle(before2, outcome.result, outcome.at);
    const { transactionId } = payment.request;
    const waits = turn && result === null;
    const done = { transactionId, revision: waits ? 0 : payment.revision, outcome, payment };
    await release(profile, before2, done);
    await Promise.all([notifyWorkflows(profile, payment), keep(profile, payment)]);
    return done;
  };
  return {
    requestPermission: (profile, payment) => sending.requestPermission(profile, payment),
    execute: executeWith(record),
    executeAndPublish: executeWith(recordAndPublish),
    release,
    record,
    recordAndPublish,
    publish
  };
}
var freesMoney = (before2, after2) => moneyOf(before2) !== "none" && moneyOf(after2) === "none";
var leavesHold = (payment) => payment.approval !== null && payment.revision === HELD_REVISION + 1;

// src/rails/fences.ts
async function layFences(rails, fences) {
  await Promise.all(
    RAILS.map(async (rail) => {
      const places = fences.flatMap(
        ({ fence, payments }) => payments[rail].map((transactionId) => ({ transactionId, fence }))
      );
      if (places.length > 0) await rails[rail].fence(places);
    })
  );
}

// src/lib/with-timeout.ts
var TimeoutError = class extends Error {
  name = "TimeoutError";
  isUnavailable = true;
};
async function withTimeout(ms, work) {
  let timer;
  const bound = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`not within ${Math.round(ms)} ms`)), Math.max(0, ms));
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}

// activities/payments.ts
var SETTLE_MS = 8e3;
var SWEPT_MS = 15e3;
function createPaymentActivities(dependencies) {
  const { clock, ledgers, onSweepFailed, proofs, rails } = dependencies;
  const effects = createPaymentEffects(dependencies);
  async function confirm2(profile, payment, outcome) {
    const { agentId } = profile;
    const { transactionId } = payment.request;
    const { revision } = payment;
    await ledgers.submit(profile, { kind: "confirm", agentId, transactionId, revision, outcome });
  }
  async function executeApproved(profile, payment) {
    const done = await effects.executeAndPublish(profile, payment, "approval");
    await ledgers.submit(profile, confirmationOf(profile.agentId, done));
    return done.payment;
  }
  async function settled2(profile, payment) {
    const ask = () => effects.requestPermission(profile, payment);
    try {
      return await rails[payment.request.rail].settle(profile, payment, SETTLE_MS, ask);
    } catch (error) {
      if (error instanceof Superseded) return null;
      throw error;
    }
  }
  async function sweep({
    executor = "server",
    payment,
    profile
  }) {
    const { transactionId } = payment.request;
    try {
      return await withTimeout(SWEPT_MS, effects.executeAndPublish(profile, payment, executor));
    } catch (error) {
      const nothing = { transactionId, revision: 0, outcome: null, payment };
      if (error instanceof Superseded) return nothing;
      onSweepFailed(transactionId, error);
      return { ...nothing, hasFailed: true };
    }
  }
  return {
    executePayments: ({ payments }) => Promise.all(payments.map(sweep)),
    async expireApproval({ profile, transactionId }) {
      const { agentId } = profile;
      const reply = await ledgers.submit(profile, { kind: "expire", agentId, transactionId });
      if (reply.kind !== "payment") return null;
      if (reply.payment.phase === "sending") return reply.payment;
      await effects.recordAndPublish(profile, reply.payment);
      await confirm2(profile, reply.payment, null);
      return reply.payment;
    },
    async executeApproved({ profile, payment }) {
      try {
        return await executeApproved(profile, payment);
      } catch (error) {
        if (!(error instanceof Superseded)) throw error;
        const { agentId } = profile;
        const { transactionId } = payment.request;
        const reply = await ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
        if (reply.kind !== "payment") return payment;
        return reply.payment.phase === "sending" ? executeApproved(profile, reply.payment) : reply.payment;
      }
    },
    async followPayment({ profile, payment }) {
      if (!proofs.isAccepted(profile, payment)) {
        proofs.onForged("payment", profile, payment);
        return { ...payment, phase: "done" };
      }
      const result = await settled2(profile, payment);
      if (result === null) return payment;
      const at = clock().getTime();
      const followed2 = settle(payment, result, at);
      if (followed2 === payment) return payment;
      const { transactionId } = payment.request;
      const outcome = { result, at };
      await effects.release(profile, payment, {
        transactionId,
        revision: followed2.revision,
        outcome,
        payment: followed2
      });
      await effects.recordAndPublish(profile, followed2);
      await confirm2(profile, followed2, outcome);
      return followed2;
    }
  };
}

// src/messages/agent.ts
var SUBMIT_BATCH_MAX = 128;

// src/actors/batch.ts
var BATCH_BYTES_MAX = 512 * 1024;
var BatchCapacity = class {
  #slots;
  #bytes = BATCH_BYTES_MAX;
  constructor(slots) {
    this.#slots = slots;
  }
  /**
   * Reserves capacity for a command, with its reply where that is long; whether there was any. `isFirst`: always, since none is
   * larger than a request, which alone fits.
   */
  tryReserve(command, repliedBytes = 0, isFirst = false) {
    if (this.#slots <= 0) return false;
    const bytes = Buffer.byteLength(JSON.stringify(command)) + repliedBytes;
    if (bytes > this.#bytes && !isFirst) return false;
    this.#bytes -= bytes;
    this.#slots -= 1;
    return true;
  }
  /** Takes from a queue's front what fits. */
  take(queue) {
    let count = 0;
    while (count < queue.length && this.tryReserve(queue[count])) count += 1;
    return queue.splice(0, count);
  }
};

// src/lib/timers.ts
var realTimers = {
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  monotonicMs: () => performance.now()
};

// src/actors/agent-actors.ts
var WAITING_COMMANDS_MAX = 1e3;
var CONFIRM_AFTER_MS = 250;
var AgentMailbox = class {
  #agentId;
  #dependencies;
  #retire;
  #waiting = [];
  #confirmations = [];
  #inFlight = null;
  #timers;
  #cancelTimer = null;
  constructor(agentId, dependencies, retire) {
    this.#agentId = agentId;
    this.#dependencies = dependencies;
    this.#retire = retire;
    this.#timers = dependencies.timers ?? realTimers;
  }
  get waiting() {
    return this.#waiting.length;
  }
  submit(command) {
    if (this.#waiting.length >= WAITING_COMMANDS_MAX)
      return Promise.reject(new ActorUnavailable("too many requests wait for this agent"));
    return new Promise((resolve3, reject) => {
      this.#waiting.push({ command, resolve: resolve3, reject });
      this.#pump();
    });
  }
  async flush() {
    await this.#inFlight;
    if (this.#confirmations.length > 0) this.#send();
    await this.#inFlight;
  }
  #pump() {
    if (this.#inFlight === null && this.#waiting.length > 0) this.#send();
  }
  #send() {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#inFlight ??= this.#exchange().finally(() => {
      this.#inFlight = null;
      this.#pump();
      this.#rest();
    });
  }
  #rest() {
    if (this.#inFlight !== null) return;
    if (this.#confirmations.length > 0)
      this.#cancelTimer ??= this.#timers.after(CONFIRM_AFTER_MS, () => this.#send());
    else this.#retire();
  }
  async #exchange() {
    const confirmations = this.#confirmations.splice(0, 2);
    const capacity = new BatchCapacity(SUBMIT_BATCH_MAX - confirmations.length);
    let count = 0;
    while (capacity.tryReserve(this.#waiting[count]?.command ?? null, 0, count === 0) && count < this.#waiting.length)
      count += 1;
    const batch = this.#waiting.splice(0, count);
    try {
      const commands3 = [...confirmations, ...batch.map(({ command }) => command)];
      const { replies, unfollowed, unrecorded: unrecorded2 } = await this.#dependencies.submit(this.#agentId, commands3);
      await this.#follow(unfollowed, unrecorded2);
      batch.forEach(({ reject, resolve: resolve3 }, index) => {
        const reply = replies[confirmations.length + index];
        if (reply === void 0) reject(new Error("the actor returned fewer replies than commands"));
        else resolve3(reply);
      });
    } catch (error) {
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the actor sweeps", error);
      for (const { reject } of batch) reject(error);
    }
  }
  /**
   * Before a response, ledger and record have followed the actor's decision. Where that takes too long, the actor's sweep does
   * it, and the caller gets an error instead of a success.
   */
  async #follow(unfollowed, unrecorded2) {
    await Promise.all([
      unfollowed === null ? null : this.#notifyLedger(unfollowed.agent, unfollowed.followed),
      unrecorded2 === null ? null : this.#record(unrecorded2)
    ]);
  }
  async #notifyLedger(agent, followed2) {
    const command = { kind: "follow_agent", agentId: this.#agentId, ...followed2 };
    await this.#dependencies.ledgers.submit(agent, command);
    this.#confirmations.push({ kind: "confirm_followed", revision: followed2.revision });
  }
  async #record(summary) {
    await this.#dependencies.writeAgent(summary);
    this.#confirmations.push({ kind: "confirm_record", revision: summary.revision });
  }
};
var AgentActors = class {
  #mailboxes = /* @__PURE__ */ new Map();
  #dependencies;
  constructor(dependencies) {
    this.#dependencies = dependencies;
  }
  /** Commands that wait for their turn, of all agents. */
  get waiting() {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }
  /**
   * Puts one command to an agent's actor. Answered once the agent's record and its project's ledger are as the actor has decided.
   * Throws `ActorUnavailable` where that takes too long, `NoSuchActor` where there is none.
   */
  submit(agentId, command) {
    const existing = this.#mailboxes.get(agentId);
    if (existing !== void 0) return existing.submit(command);
    const mailbox = new AgentMailbox(agentId, this.#dependencies, () => {
      if (this.#mailboxes.get(agentId) === mailbox) this.#mailboxes.delete(agentId);
    });
    this.#mailboxes.set(agentId, mailbox);
    return mailbox.submit(command);
  }
  async flushAll() {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush()));
  }
};

// src/actors/ledgers.ts
import { LRUCache as LRUCache2 } from "lru-cache";

// src/actors/account-records.ts
var TICK_MS = 500;
var CONFIRMED_AT_ONCE_MAX = 1e3;
var AccountRecords = class {
  #dependencies;
  #onWritten;
  /** The newest summaries that are not written yet, and those that are being written. */
  #unwritten = /* @__PURE__ */ new Map();
  #writing = /* @__PURE__ */ new Map();
  /** The newest revisions that were written and not confirmed. */
  #unconfirmed = /* @__PURE__ */ new Map();
  #timers;
  #cancelTimer = null;
  constructor(dependencies, onWritten) {
    this.#dependencies = dependencies;
    this.#timers = dependencies.timers ?? realTimers;
    this.#onWritten = onWritten;
  }
  get hasToWrite() {
    return this.#unwritten.size > 0 || this.#writing.size > 0;
  }
  get hasToConfirm() {
    return this.#unconfirmed.size > 0;
  }
  isBehind(agentId) {
    return this.#unwritten.has(agentId) || this.#writing.has(agentId);
  }
  /** Summaries of accounts that have changed. */
  add(accounts) {
    for (const account of accounts) {
      const { agentId, revision } = account;
      const isWritten = (this.#unconfirmed.get(agentId) ?? 0) >= revision;
      if (!isWritten && (this.#unwritten.get(agentId)?.revision ?? 0) < revision)
        this.#unwritten.set(agentId, account);
    }
    if (this.#unwritten.size === 0) return;
    const untilTick = TICK_MS - this.#timers.monotonicMs() % TICK_MS;
    this.#cancelTimer ??= this.#timers.after(untilTick, () => this.#writeAll());
  }
  /** Writes what is known of an agent (null: of all), and waits for it. */
  async write(agentId) {
    if (agentId === null) {
      this.#writeAll();
      return void await Promise.all(this.#writing.values());
    }
    this.#write(agentId);
    await this.#writing.get(agentId);
  }
  #writeAll() {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    for (const agentId of this.#unwritten.keys()) this.#write(agentId);
  }
  #write(agentId) {
    const summary = this.#unwritten.get(agentId);
    if (summary === void 0) return;
    this.#unwritten.delete(agentId);
    const before2 = this.#writing.get(agentId) ?? Promise.resolve();
    const writing = Promise.all([before2, this.#record(summary)]).finally(() => {
      if (this.#writing.get(agentId) === writing) this.#writing.delete(agentId);
      this.#onWritten();
    });
    this.#writing.set(agentId, writing);
  }
  async #record(summary) {
    const { agentId, revision } = summary;
    try {
      await this.#dependencies.recordAccount(summary);
      this.#unconfirmed.set(agentId, Math.max(this.#unconfirmed.get(agentId) ?? 0, revision));
    } catch (error) {
      this.#dependencies.onError("an agent's record was not written; its ledger sweeps", error);
    }
  }
  /** For the ledger: what the records show by now; null: nothing new. */
  confirmation() {
    if (this.#unconfirmed.size === 0) return null;
    const records = [...this.#unconfirmed].slice(0, CONFIRMED_AT_ONCE_MAX).map(([agentId, revision]) => ({ agentId, revision }));
    return { kind: "confirm_records", records };
  }
  /** The ledger knows. */
  confirmed({ records }) {
    for (const { agentId, revision } of records) {
      if ((this.#unconfirmed.get(agentId) ?? 0) <= revision) this.#unconfirmed.delete(agentId);
    }
  }
};

// src/actors/commands-refused.ts
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { ApplicationFailure } from "@temporalio/common";

// src/messages/guards/guards.ts
var TIME_MAX_MS = 864e13;
var ID_CHARACTERS_MAX = 200;
var CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;
var INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));
var isFields = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var isFlag = (value) => typeof value === "boolean";
var isInteger = (value) => Number.isSafeInteger(value);
var isCount = (value) => isInteger(value) && value >= 0;
var isTime = (value) => isCount(value) && value <= TIME_MAX_MS;
var isAtMost = (max) => (value) => isCount(value) && value <= max;
var isId = (value) => typeof value === "string" && value.length > 0 && value.length <= ID_CHARACTERS_MAX && !INHERITED.has(value) && !CONTROL.test(value);
var isText = (max) => (value) => typeof value === "string" && (value.length <= max || value.length <= 2 * max && Array.from(value).length <= max) && !CONTROL.test(value) && value.isWellFormed();
var isOneOf = (values) => (value) => values.some((one) => one === value);
var orNull = (guard) => (value) => value === null || guard(value);
var optional = (guard) => ({ optional: guard });
var isArrayOf = (item, max) => (value) => Array.isArray(value) && value.length <= max && value.every(item);
var isPairOf = (first, second) => (value) => Array.isArray(value) && value.length === 2 && first(value[0]) && second(value[1]);
var either = (...guards) => (value) => guards.some((guard) => guard(value));
function isRecord2(shape) {
  const hasFields = fieldsOf(shape);
  return (value) => isFields(value) && hasFields(value, 0);
}
var isVariant = (tag, shapes) => {
  const guards = variantsOf(shapes);
  return (value) => {
    if (!isFields(value)) return false;
    const name = value[tag];
    return typeof name === "string" && guards.get(name)?.(value, 1) === true;
  };
};
var variantsOf = (shapes) => new Map(Object.entries(shapes).map(([name, shape]) => [name, fieldsOf(shape)]));
function fieldsOf(shape) {
  const fields = Object.entries(shape).map(([name, field]) => {
    if (typeof field === "function") return { name, guard: field, isOptional: false };
    const guard = isFields(field) ? field["optional"] : null;
    if (typeof guard !== "function") throw new Error(`the field ${name} has no guard`);
    return { name, guard, isOptional: true };
  });
  return (value, others) => {
    let known2 = others;
    for (const { guard, isOptional, name } of fields) {
      const given = value[name];
      if (given === void 0 && isOptional) continue;
      if (guard(given) !== true) return false;
      known2 += 1;
    }
    return Object.keys(value).length === known2;
  };
}

// src/messages/guards/payment.ts
var NAME_CHARACTERS_MAX = 300;
var REASON_CHARACTERS_MAX = 2e3;
var RECIPIENT_CHARACTERS_MAX = 200;
var PURPOSE_CHARACTERS_MAX = 500;
var FEEDBACK_CHARACTERS_MAX = 1e3;
var FLAGS_MAX = 50;
var isRail = isOneOf(RAILS);
var isReason = isText(REASON_CHARACTERS_MAX);
var isShort = isText(100);
var isCents = isAtMost(MAX_CENTS);
var isName = isText(NAME_CHARACTERS_MAX);
var isFeedback = isText(FEEDBACK_CHARACTERS_MAX);
var isProof = isText(100);
var isProfile = isRecord2({
  organizationId: isId,
  projectId: isId,
  teamId: isId,
  agentId: isId,
  name: isName
});
var isResolver = isRecord2({ userId: isId, name: isName });
var isRequest = isRecord2({
  transactionId: isId,
  approvalId: isId,
  keyHash: isId,
  payloadHash: isId,
  rail: isRail,
  amountCents: isCents,
  currency: isOneOf(["USD"]),
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  merchantCategory: orNull(isShort),
  purpose: isText(PURPOSE_CHARACTERS_MAX),
  fingerprint: isId,
  proof: isProof,
  rulesVersions: optional(isRecord2({ project: orNull(isCount), team: orNull(isCount) }))
});
var limitCodes = [
  "PER_TRANSACTION_LIMIT_EXCEEDED",
  "BUDGET_EXCEEDED",
  "DAILY_SPEND_LIMIT_EXCEEDED",
  "HOURLY_VELOCITY_EXCEEDED",
  "DAILY_VELOCITY_EXCEEDED",
  "TEAM_CAP_EXCEEDED",
  "PROJECT_CAP_EXCEEDED"
];
var isDetails = isRecord2({ limit: isCount, remaining: isCount, resetsAt: orNull(isTime) });
var railCodes = ["CARD_DECLINED", "INSUFFICIENT_FUNDS", "RAIL_UNAVAILABLE"];
var isDenial = isRecord2({
  code: isOneOf([
    ...limitCodes,
    ...railCodes,
    "AGENT_PAUSED",
    "AGENT_ARCHIVED",
    "APPROVAL_DENIED",
    "APPROVAL_EXPIRED",
    "CANCELLED_BY_AGENT"
  ]),
  reason: isReason,
  details: orNull(isDetails)
});
var onChain = optional(isRecord2({ txHash: isShort, chainCaip2: isShort }));
var isRailOutcome = isVariant("status", {
  settled: { final: isFlag, onChain },
  pending: { onChain },
  failed: { onChain, code: isOneOf(railCodes), reason: isReason },
  reversed: {},
  withheld: {}
});
var approval = {
  id: isId,
  flaggedByRuleTypes: isArrayOf(isShort, FLAGS_MAX),
  budgetContext: isRecord2({
    budgetCents: isCount,
    spentCents: isCount,
    reservedCents: isCount,
    remainingCents: isCount
  }),
  expiresAt: isTime,
  resolution: orNull(isOneOf(["approved", "executing", "denied", "failed", "expired"])),
  resolvedAt: orNull(isTime),
  resolvedBy: orNull(isResolver),
  feedback: orNull(isFeedback),
  proof: optional(isProof),
  isForged: optional(isTrue),
  policyVersion: optional(isCount)
};
function isTrue(value) {
  return value === true;
}
var isPayment2 = isRecord2({
  request: isRequest,
  sequence: isCount,
  createdAt: isTime,
  countedAt: isTime,
  day: isShort,
  status: isOneOf(["approved", "pending", "denied", "failed", "reversed", "expired"]),
  phase: isOneOf(["held", "sending", "following", "done"]),
  executor: isOneOf(["server", "approval"]),
  denial: orNull(isDenial),
  deniedAt: orNull(isTime),
  approval: orNull(isRecord2(approval)),
  onChainTxHash: orNull(isShort),
  chainCaip2: orNull(isShort),
  policyVersion: isCount,
  revision: isCount
});
var isApprovalInput = isRecord2({
  profile: isProfile,
  approvalId: isId,
  transactionId: isId,
  amountCents: isCents,
  flaggedByRuleTypes: isArrayOf(isShort, FLAGS_MAX),
  expiresAt: isTime
});
var isSettlementInput = isRecord2({
  profile: isProfile,
  payment: isPayment2,
  polls: isCount
});

// src/messages/guards/agent-commands.ts
var isArchiver = isVariant("type", {
  user: {},
  organization_key: { lineageId: isId, balance: isOneOf(["zero", "not_zero", "unreadable"]) }
});
var commands = {
  rename: { name: isName },
  authenticate: { keyId: isId },
  mint_key: { keyId: isId },
  revoke_key: {},
  prove_non_delivery: { lineageId: isId },
  archive: { by: isArchiver },
  confirm_detached: {},
  confirm_record: { revision: isCount },
  confirm_followed: { revision: isCount },
  follow_status: { status: isOneOf(["active", "paused"]), revision: isCount }
};
var AGENT_COMMAND_KINDS = new Set(Object.keys(commands));
var isAgentCommand = isVariant("kind", commands);

// src/messages/guards/payment-rules.ts
var RULE_CHECKS_MAX = 100;
var ZONE_SEGMENTS_MAX = 1e3;
var DAY_MINUTES2 = 1440;
var WEEKDAYS2 = 7;
var isMinutes = isAtMost(DAY_MINUTES2);
var isLedgerCheck2 = isVariant("type", {
  velocity: { count: isCount, windowSeconds: isCount },
  duplicate: { windowSeconds: isCount },
  time_window: {
    zone: isCount,
    days: isArrayOf(isAtMost(WEEKDAYS2), WEEKDAYS2),
    fromMinutes: isMinutes,
    toMinutes: isMinutes,
    outside: isFlag
  }
});
var isRuleCheck = either(
  isRecord2({ type: isOneOf(SERVER_RULE_TYPES) }),
  isLedgerCheck2
);
var isZone = isRecord2({
  // A segment that began before 1970 is one from then on, or earlier.
  segments: isArrayOf(isPairOf(isInteger, isFinite), ZONE_SEGMENTS_MAX),
  untilMs: isInteger
});
function isFinite(value) {
  return Number.isFinite(value);
}
var isRules = isRecord2({
  checks: isArrayOf(isRuleCheck, RULE_CHECKS_MAX),
  zones: optional(isArrayOf(isZone, RULE_CHECKS_MAX)),
  similarAt: optional(isTime)
});

// src/messages/guards/ledger-commands.ts
var APPROVAL_WINDOW_SECONDS_MAX = 31536e3;
var CHILDREN_MAX = 2e4;
var isLimit = orNull(isCents);
var isCountLimit = orNull(isCount);
var policy = isRecord2({
  budgetCents: isCents,
  autoApprovalThresholdCents: isLimit,
  perTransactionLimitCents: isLimit,
  dailySpendLimitCents: isLimit,
  hourlyVelocityLimit: isCountLimit,
  dailyVelocityLimit: isCountLimit
});
var patch = isRecord2({
  budgetCents: optional(isCents),
  autoApprovalThresholdCents: optional(isLimit),
  perTransactionLimitCents: optional(isLimit),
  dailySpendLimitCents: optional(isLimit),
  hourlyVelocityLimit: optional(isCountLimit),
  dailyVelocityLimit: optional(isCountLimit)
});
var isOutcome = isRecord2({
  result: isRailOutcome,
  at: isTime
});
var isTeamCap = isRecord2({
  teamId: isId,
  capCents: isLimit
});
var isAgentBudget = isRecord2({
  agentId: isId,
  budgetCents: isCents
});
var isRecorded = isRecord2({
  agentId: isId,
  revision: isCount
});
var isRecordedCap = isRecord2({
  teamId: orNull(isId),
  version: isCount
});
var requestId = optional(isId);
var ofAgent = { agentId: isId, requestId };
var ofPayment = { ...ofAgent, transactionId: isId };
var commands2 = {
  open_account: { ...ofAgent, teamId: isId, name: isName, policy, keyId: orNull(isId) },
  pay: {
    ...ofAgent,
    keyId: isId,
    cachedAgentRevision: optional(isCount),
    request: isRequest,
    approvalWindowSeconds: isAtMost(APPROVAL_WINDOW_SECONDS_MAX),
    recordsCheckedThrough: isCount,
    rules: optional(isRules)
  },
  confirm: { ...ofPayment, revision: isCount, outcome: orNull(isOutcome) },
  confirm_limits: { ...ofAgent, policyVersion: isCount },
  approve: { ...ofPayment, by: isResolver, proof: isProof },
  deny: { ...ofPayment, by: isResolver, feedback: isFeedback, proof: isProof },
  expire: ofPayment,
  cancel: ofPayment,
  request_permission: ofPayment,
  read_payment: ofPayment,
  change_policy: { ...ofAgent, patch, version: isInteger },
  pause: ofAgent,
  resume: ofAgent,
  follow_agent: { ...ofAgent, revision: isCount, name: isName, keyId: orNull(isId), isArchived: isFlag },
  replace_project: {
    requestId,
    version: isInteger,
    capCents: isLimit,
    teams: isArrayOf(isTeamCap, CHILDREN_MAX)
  },
  replace_team: {
    requestId,
    teamId: isId,
    version: isInteger,
    capCents: isLimit,
    agents: isArrayOf(isAgentBudget, CHILDREN_MAX)
  },
  follow_rules: { requestId, teamId: orNull(isId), version: isCount },
  confirm_records: { requestId, records: isArrayOf(isRecorded, CHILDREN_MAX) },
  confirm_caps: { requestId, caps: isArrayOf(isRecordedCap, CHILDREN_MAX) }
};
var LEDGER_COMMAND_KINDS = new Set(Object.keys(commands2));
var isLedgerCommand = isVariant("kind", commands2);
var isAssessed = isRecord2({
  rail: isRail,
  recipient: isText(RECIPIENT_CHARACTERS_MAX),
  amountCents: isCents,
  fingerprint: isId,
  rules: optional(isRules)
});
var isAccountQueryInput = isRecord2({
  agentId: isId,
  now: isTime,
  payment: optional(orNull(isAssessed))
});
var isKnownRevisions = isRecord2({
  ledger: isCount,
  recorded: isCount,
  isRead: isFlag
});
var SNAPSHOT_PAGE_MAX = 1e3;
var isSnapshotQueryInput = isRecord2({
  after: orNull(isId),
  limit: isAtMost(SNAPSHOT_PAGE_MAX)
});

// src/messages/guards/refusals.ts
var LEDGER_UPDATE_MAX = LEDGER_BATCH_MAX + LEDGER_CONFIRMATIONS_MAX;
var isRefusal = isRecord2({
  commands: isArrayOf(
    isRecord2({ index: isCount, why: isOneOf(["unknown", "malformed"]) }),
    Math.max(SUBMIT_BATCH_MAX, LEDGER_UPDATE_MAX)
  )
});

// src/actors/commands-refused.ts
var CommandsRefused = class extends Error {
  name = "CommandsRefused";
  isUnavailable = true;
  /** The indexes in the batch of the refused commands; the others may be submitted again without them. */
  indexes;
  constructor({ commands: commands3 }, options) {
    super("the actor refused a command that it does not know, perhaps not yet", options);
    this.indexes = new Set(commands3.map(({ index }) => index));
  }
};

// src/actors/fair-queue.ts
var SHARE_MAX = 8;
var SHARED_BATCHES = 8;
var FairQueue = class {
  #urgencyOf;
  /** By sender, in the order of their turns. */
  #bySender = /* @__PURE__ */ new Map();
  /** Senders that have a stop waiting. */
  #stopped = /* @__PURE__ */ new Set();
  #size = 0;
  /** How many of the next batches are shared, though only one sender waits. */
  #sharedBatches = 0;
  constructor(urgencyOf2) {
    this.#urgencyOf = urgencyOf2;
  }
  get size() {
    return this.#size;
  }
  /** Whether something waits that stops its sender. */
  get hasStop() {
    return this.#stopped.size > 0;
  }
  sizeOf(sender) {
    return this.#bySender.get(sender)?.length ?? 0;
  }
  add(sender, item) {
    const waiting = this.#bySender.get(sender) ?? [];
    this.#bySender.set(sender, waiting);
    this.#size += 1;
    if (this.#urgencyOf(item) !== "stop") return void waiting.push(item);
    const behind = waiting.findLastIndex((each) => this.#urgencyOf(each) !== "none");
    waiting.splice(behind + 1, 0, item);
    this.#stopped.add(sender);
  }
  /** Puts commands that were taken and not sent back to the front. */
  requeue(sender, items) {
    if (items.length === 0) return;
    this.#bySender.set(sender, [...items, ...this.#bySender.get(sender) ?? []]);
    this.#size += items.length;
    if (items.some((item) => this.#urgencyOf(item) === "stop")) this.#stopped.add(sender);
  }
  /** * Takes what fits: stops, then round robin over senders, of none more than its share while others send as well. Always at least one. */
  take(capacity, commandOf, repliedBytesOf2) {
    const taken = [];
    const takeFrom = (sender, max) => {
      const waiting = this.#bySender.get(sender) ?? [];
      let count = 0;
      for (const item of waiting) {
        if (count >= max) break;
        const command = commandOf(item);
        if (!capacity.tryReserve(command, repliedBytesOf2(command), taken.length + count === 0)) break;
        count += 1;
      }
      if (count === 0) return false;
      taken.push(...waiting.splice(0, count));
      this.#size -= count;
      this.#bySender.delete(sender);
      if (waiting.length > 0) this.#bySender.set(sender, waiting);
      return true;
    };
    for (const sender of this.#stopped) {
      const waiting = this.#bySender.get(sender) ?? [];
      takeFrom(sender, 1 + waiting.findLastIndex((each) => this.#urgencyOf(each) === "stop"));
      const left = this.#bySender.get(sender) ?? [];
      if (!left.some((each) => this.#urgencyOf(each) === "stop")) this.#stopped.delete(sender);
    }
    const senders = [...this.#bySender.keys()];
    this.#sharedBatches = senders.length > 1 ? SHARED_BATCHES : Math.max(0, this.#sharedBatches - 1);
    const share = this.#sharedBatches > 0 ? SHARE_MAX : Infinity;
    for (const sender of senders) takeFrom(sender, share);
    return taken;
  }
};

// src/actors/batch-linger.ts
var EXPECTED_REQUEST_MS = 2;
var RETURNING_MS = 2;
var RESPONSE_MARGIN_MS = 12;
var NEWEST_SHARE = 0.25;
var FRUITLESS_MAX = 3;
var UNLINGERED_BATCHES = 32;
var RETURNED_PART = 0.5;
var BatchLinger = class {
  #timers;
  #onRelease;
  /** Requests that are about to ask, and those that were decided and are being answered. */
  #expecting = 0;
  #answering = 0;
  /** When the last update ended, how long one takes, and who was answered last. */
  #endedMs = 0;
  #updateMs = 0;
  #answeredMs = -Infinity;
  /** How many callers the batch lingers for, and how many commands it had then; null: none. */
  #lingered = null;
  #fruitless = 0;
  #unlingered = 0;
  constructor(timers, onRelease) {
    this.#timers = timers;
    this.#onRelease = onRelease;
  }
  /** Whether any caller is counted. */
  get isEmpty() {
    return this.#expecting === 0 && this.#answering === 0;
  }
  /** A request is about to ask. */
  expecting() {
    this.#expecting += 1;
    return this.#once(() => this.#expecting -= 1);
  }
  /** A request was decided, and is being answered. */
  answering() {
    this.#answering += 1;
    return this.#once(() => {
      this.#answering -= 1;
      this.#answeredMs = this.#timers.monotonicMs();
    });
  }
  updated(tookMs) {
    this.#endedMs = this.#timers.monotonicMs();
    const before2 = this.#updateMs === 0 ? tookMs : this.#updateMs;
    this.#updateMs = before2 + NEWEST_SHARE * (tookMs - before2);
  }
  /** How much longer a batch of so many commands lingers, the first of them since then; 0: it is sent. */
  leftMs(waiting, sinceMs) {
    const now = this.#timers.monotonicMs();
    const untilMs = Math.max(
      this.#expecting > 0 ? Math.max(sinceMs, this.#endedMs) + EXPECTED_REQUEST_MS : 0,
      this.#unlingered > 0 ? 0 : this.#returningUntilMs()
    );
    if (untilMs > now) this.#lingered ??= { from: this.#answering, were: waiting };
    return Math.max(0, untilMs - now);
  }
  #returningUntilMs() {
    const lastMs = this.#endedMs + Math.min(this.#updateMs, RESPONSE_MARGIN_MS);
    return this.#answering > 0 ? lastMs : Math.min(lastMs, this.#answeredMs + RETURNING_MS);
  }
  /** A batch of so many goes. */
  sent(commands3) {
    const lingered = this.#lingered;
    this.#lingered = null;
    this.#unlingered = Math.max(0, this.#unlingered - 1);
    if (lingered === null || lingered.from === 0) return;
    const returned = commands3 - lingered.were;
    this.#fruitless = returned >= RETURNED_PART * lingered.from ? 0 : this.#fruitless + 1;
    if (this.#fruitless < FRUITLESS_MAX) return;
    this.#fruitless = 0;
    this.#unlingered = UNLINGERED_BATCHES;
  }
  #once(release) {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      release();
      this.#onRelease();
    };
  }
};

// src/actors/ledger-mailbox.ts
var WAITING_OF_AGENT_MAX = 1e3;
var WAITING_MAX = 5e3;
var WAITING_STOPS_MAX = 100;
var PUBLISHED_MS = 1e3;
var LedgerMailbox = class {
  #project;
  #dependencies;
  #retire;
  #waiting = new FairQueue(({ command }) => urgencyOf(command));
  #records;
  #confirmations = [];
  /** Confirmations of payments that are still being published, by agent. None of them ever rejects. */
  #unpublished = /* @__PURE__ */ new Map();
  #inFlight = null;
  #timers;
  #cancelTimer = null;
  #linger;
  #cancelLinger = null;
  /** When the oldest waiting command arrived. */
  #waitingSinceMs = 0;
  constructor(project, dependencies, retire) {
    this.#project = project;
    this.#dependencies = dependencies;
    this.#retire = retire;
    this.#timers = dependencies.timers ?? realTimers;
    this.#linger = new BatchLinger(this.#timers, () => {
      this.#pump();
      this.#rest();
    });
    this.#records = new AccountRecords(dependencies, () => this.#rest());
  }
  /** Commands that wait for the update in flight. */
  get waiting() {
    return this.#waiting.size;
  }
  submit(command) {
    const sender = senderOf(command);
    const spare = urgencyOf(command) === "stop" ? WAITING_STOPS_MAX : 0;
    const isFull = this.#waiting.size >= WAITING_MAX + spare || this.#waiting.sizeOf(sender) >= WAITING_OF_AGENT_MAX + spare;
    if (isFull) return Promise.reject(new ActorUnavailable("too many requests wait for this ledger"));
    return new Promise((resolve3, reject) => {
      if (this.#waiting.size === 0) this.#waitingSinceMs = this.#timers.monotonicMs();
      this.#waiting.add(sender, { sender, command, resolve: resolve3, reject });
      this.#pump();
    });
  }
  /** A request is about to submit: a batch waits a moment for it. The caller calls the returned function once it has submitted, or will not. */
  expect() {
    return this.#linger.expecting();
  }
  /** A request was decided: a batch waits a moment for its caller's next one. Released as above once it was answered. */
  answering() {
    return this.#linger.answering();
  }
  confirmLater(confirmation, published) {
    const confirming = this.#confirmOnce(confirmation, published).finally(() => {
      this.#unpublished.delete(confirming);
      this.#rest();
    });
    this.#unpublished.set(confirming, confirmation.agentId);
  }
  async #confirmOnce(confirmation, published) {
    try {
      await published;
      this.#confirmations.push(confirmation);
    } catch (error) {
      this.#dependencies.onError("a payment's outcome was not published; its ledger will publish it", error);
    }
  }
  /** Sends what waits by now of an agent (null: of all), confirmations too, and waits until the records show it. */
  async flush(agentId) {
    await this.#allPublished(agentId);
    const isUnfinished = () => this.#confirmations.some((each) => agentId === null || each.agentId === agentId) || (agentId === null ? this.#waiting.size : this.#waiting.sizeOf(agentId)) > 0;
    for (let left = 2 + Math.ceil(this.#confirmations.length / LEDGER_CONFIRMATIONS_MAX); left > 0; left -= 1) {
      await this.#inFlight;
      if (!isUnfinished()) break;
      if (this.#inFlight === null) this.#send();
    }
    await this.#inFlight;
    await this.#records.write(agentId);
  }
  async #allPublished(agentId) {
    const unpublished = [...this.#unpublished].flatMap(
      ([publication, of]) => agentId === null || of === agentId ? [publication] : []
    );
    if (unpublished.length === 0) return;
    this.#dependencies.flushPublished();
    await withTimeout(PUBLISHED_MS, Promise.all(unpublished)).catch(() => void 0);
  }
  /** Whether this process may know more of an agent than its record shows. */
  isBehind(agentId) {
    return this.#inFlight !== null || this.#waiting.sizeOf(agentId) > 0 || this.#records.isBehind(agentId) || this.#confirmations.some((each) => each.agentId === agentId) || [...this.#unpublished.values()].includes(agentId);
  }
  #hasToConfirm() {
    return this.#confirmations.length > 0 || this.#records.hasToConfirm;
  }
  #confirmNow() {
    this.#clearTimer();
    if (this.#inFlight === null && this.#hasToConfirm()) this.#send();
  }
  /** Sends the next batch, a moment later where more is about to come. */
  #pump() {
    if (this.#inFlight !== null || this.#waiting.size === 0) return;
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    const { size } = this.#waiting;
    const canWait = size < LEDGER_BATCH_MAX && !this.#waiting.hasStop;
    const leftMs = canWait ? this.#linger.leftMs(size, this.#waitingSinceMs) : 0;
    if (leftMs <= 0) this.#send();
    else
      this.#cancelLinger = this.#timers.after(leftMs, () => {
        this.#cancelLinger = null;
        this.#pump();
      });
  }
  #send() {
    this.#clearTimer();
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    this.#linger.sent(this.#waiting.size);
    const sentMs = this.#timers.monotonicMs();
    this.#inFlight = this.#exchange().finally(() => {
      this.#inFlight = null;
      this.#linger.updated(this.#timers.monotonicMs() - sentMs);
      this.#pump();
      this.#rest();
    });
  }
  /** Nothing is in flight: confirmations that are left are sent shortly; an empty mailbox is retired. */
  #rest() {
    if (this.#inFlight !== null || this.#waiting.size > 0) return;
    if (this.#hasToConfirm())
      this.#cancelTimer ??= this.#timers.after(this.#dependencies.confirmAfterMs, () => this.#confirmNow());
    else if (this.#unpublished.size === 0 && this.#linger.isEmpty && !this.#records.hasToWrite)
      this.#retire();
  }
  async #exchange() {
    const written = this.#records.confirmation();
    const confirmations = new BatchCapacity(LEDGER_CONFIRMATIONS_MAX - 1).take(this.#confirmations);
    const before2 = written === null ? confirmations : [written, ...confirmations];
    const batch = this.#waiting.take(
      new BatchCapacity(LEDGER_BATCH_MAX),
      ({ command }) => command,
      repliedBytesOf
    );
    const requestedMs = this.#timers.monotonicMs();
    try {
      const commands3 = [...before2, ...batch.map(({ command }) => command)];
      const result = await this.#dependencies.submit(this.#project, commands3);
      if (written !== null) this.#records.confirmed(written);
      this.#answer(batch, result, { requestedMs, skipped: before2.length });
    } catch (error) {
      if (error instanceof CommandsRefused && error.indexes.size > 0) {
        return this.#requeueUnrefused(error, { written, confirmations, batch });
      }
      if (batch.length === 0) this.#dependencies.onError("confirmations were lost; the ledger sweeps", error);
      for (const { reject } of batch) reject(error);
    }
  }
  #answer(batch, { accounts, replies, revisionRecorded }, { requestedMs, skipped }) {
    const revisions = new Map(accounts.map(({ agentId, revision }) => [agentId, revision]));
    this.#records.add(accounts);
    batch.forEach(({ reject, resolve: resolve3, sender }, index) => {
      const reply = replies[skipped + index];
      if (reply === void 0) reject(new Error("the ledger returned fewer replies than commands"));
      else if (reply.kind === "failed") reject(new Error(`the ledger could not judge: ${reply.message}`));
      else resolve3({ reply, revision: revisions.get(sender) ?? 0, requestedMs, revisionRecorded });
    });
  }
  /** Nothing of the batch was decided: the commands that were not refused go to the front of the next. */
  #requeueUnrefused(refused, { batch, confirmations, written }) {
    const { indexes } = refused;
    const first = written === null ? 0 : 1;
    if (written !== null && indexes.has(0)) this.#records.confirmed(written);
    const retained = confirmations.filter((_command, index) => !indexes.has(first + index));
    this.#confirmations.unshift(...retained);
    if (retained.length < confirmations.length || written !== null && indexes.has(0))
      this.#dependencies.onError("confirmations were refused; the ledger sweeps", refused);
    const waitingFrom = first + confirmations.length;
    const isRefused = (index) => indexes.has(waitingFrom + index);
    for (const [index, waiting] of [...batch.entries()].toReversed()) {
      if (!isRefused(index)) this.#waiting.requeue(waiting.sender, [waiting]);
    }
    batch.forEach(({ reject }, index) => isRefused(index) && reject(refused));
  }
  #clearTimer() {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
};
var senderOf = (command) => "agentId" in command ? command.agentId : "";
function urgencyOf(command) {
  switch (command.kind) {
    case "pause":
      return "stop";
    case "resume":
      return "start";
    case "follow_agent":
      return command.isArchived || command.keyId === null ? "stop" : "start";
    default:
      return "none";
  }
}
var SUMMARY_BYTES = 400;
var PAYMENT_BYTES = 2e3;
function repliedBytesOf(command) {
  switch (command.kind) {
    case "replace_team":
      return command.agents.length * SUMMARY_BYTES;
    // All agents of a project have at most 2,000 payments for their fences to name.
    case "pause":
    case "approve":
    case "deny":
    case "cancel":
    case "expire":
    case "read_payment":
      return PAYMENT_BYTES;
    default:
      return SUMMARY_BYTES;
  }
}

// src/actors/ledger-revisions.ts
import { LRUCache } from "lru-cache";
var KNOWN_MAX = 1e4;
var KNOWN_FRESH_MS = 2e3;
var READS_MAX = 3;
var LedgerRevisions = class {
  #known = new LRUCache({ max: KNOWN_MAX });
  #records;
  #timers;
  #submit;
  constructor(records, submit, timers) {
    this.#records = records;
    this.#submit = submit;
    this.#timers = timers;
  }
  async submit(project, commands3) {
    const { projectId } = project;
    const result = await this.#submitWithRevisions(project, commands3);
    this.#update(projectId, { ledger: result.revision });
    const isDecision = commands3.some(({ kind }) => !kind.startsWith("confirm"));
    const revisionRecorded = isDecision ? this.#record(projectId, result.revision) : Promise.resolve();
    revisionRecorded.catch(() => void 0);
    return { ...result, revisionRecorded };
  }
  async #submitWithRevisions(project, commands3) {
    const known2 = this.#known.get(project.projectId);
    const isFresh = known2 !== void 0 && this.#timers.monotonicMs() - known2.updatedAtMs < KNOWN_FRESH_MS;
    if (isFresh) {
      const { ledger, recorded } = known2;
      return this.#submit(project, commands3, { ledger, recorded, isRead: false });
    }
    for (let reads = 1; ; reads += 1) {
      try {
        return await this.#submit(project, commands3, await this.#read(project.projectId));
      } catch (error) {
        if (!(error instanceof StaleRecords) || reads >= READS_MAX) throw error;
      }
    }
  }
  async #read(projectId) {
    const recorded = await this.#records.read(projectId);
    const ledger = this.#known.get(projectId)?.ledger ?? 0;
    return { ledger, recorded, isRead: true };
  }
  async #record(projectId, revision) {
    await this.#records.write(projectId, revision);
    this.#update(projectId, { recorded: revision });
  }
  #update(projectId, { ledger = 0, recorded = 0 }) {
    const known2 = this.#known.get(projectId) ?? { ledger: 0, recorded: 0, updatedAtMs: 0 };
    this.#known.set(projectId, {
      ledger: Math.max(known2.ledger, ledger),
      recorded: Math.max(known2.recorded, recorded),
      updatedAtMs: ledger > 0 ? this.#timers.monotonicMs() : known2.updatedAtMs
    });
  }
};

// src/actors/ledgers.ts
var KNOWN_CLOSED_MAX = 1e4;
var Ledgers = class {
  #mailboxes = /* @__PURE__ */ new Map();
  #dependencies;
  #closed = new LRUCache2({ max: KNOWN_CLOSED_MAX });
  constructor(dependencies) {
    const { revisions: records, submit, timers = realTimers } = dependencies;
    const revisions = new LedgerRevisions(records, submit, timers);
    this.#dependencies = {
      ...dependencies,
      submit: async (project, commands3) => {
        const result = await revisions.submit(project, commands3);
        for (const [agentId, closed] of Object.entries(result.closed)) this.#closed.set(agentId, closed);
        return result;
      }
    };
  }
  /** Commands that wait for their turn, of all projects. */
  get waiting() {
    let waiting = 0;
    for (const mailbox of this.#mailboxes.values()) waiting += mailbox.waiting;
    return waiting;
  }
  /** Puts one command to a project's ledger. Throws `ActorUnavailable` when no answer came in time. */
  async submit(project, command) {
    return (await this.submitRecorded(project, command)).reply;
  }
  /** The same, for who waits until the agent's record has come that far. */
  async submitRecorded(project, command) {
    const answered = await this.submitUnrecorded(project, command);
    await answered.revisionRecorded;
    return answered;
  }
  /** The same, for a caller that does other work first, and awaits `revisionRecorded` before it responds. */
  submitUnrecorded(project, command) {
    return this.#of(project).submit(command);
  }
  /** A request is about to ask (see `LedgerMailbox.expect`). */
  expect(project) {
    return this.#of(project).expect();
  }
  /** A request was decided, and is being answered (see `LedgerMailbox.answering`). */
  answering(project) {
    return this.#of(project).answering();
  }
  /** Confirms an executed payment to the ledger once it is published, with its next update after that or shortly after. */
  confirmLater(project, confirmation, published) {
    this.#of(project).confirmLater(confirmation, published);
  }
  /** How many of the agent's payments were closed as of the ledger's last reply, if it has evicted idempotency keys; else 0. */
  closedOf(agentId) {
    return this.#closed.get(agentId) ?? 0;
  }
  /** After this, ledger and record show everything that this process has executed for the agent. */
  async flush({ projectId }, agentId) {
    await this.#mailboxes.get(projectId)?.flush(agentId);
  }
  /** The same for all agents of a project. */
  async flushProject(projectId) {
    await this.#mailboxes.get(projectId)?.flush(null);
  }
  async flushAll() {
    await Promise.all([...this.#mailboxes.values()].map((mailbox) => mailbox.flush(null)));
  }
  /** Whether this process may know more of an agent than its record shows. */
  isBehind({ projectId }, agentId) {
    return this.#mailboxes.get(projectId)?.isBehind(agentId) ?? false;
  }
  #of(project) {
    const { organizationId, projectId } = project;
    const existing = this.#mailboxes.get(projectId);
    if (existing !== void 0) return existing;
    const mailbox = new LedgerMailbox({ organizationId, projectId }, this.#dependencies, () => {
      if (this.#mailboxes.get(projectId) === mailbox) this.#mailboxes.delete(projectId);
    });
    this.#mailboxes.set(projectId, mailbox);
    return mailbox;
  }
};

// scripts/simulation/process.ts
var PAY_MS = 3400;
var CONFIRM_AFTER_MS2 = 200;
var DECISION_ATTEMPTS_MAX = 6;
var onError = () => void 0;
var ServiceProcess = class {
  host;
  activities;
  ledgers;
  agents;
  #effects;
  #surroundings;
  #projections;
  constructor(name, surroundings) {
    this.host = new Host(name);
    this.#surroundings = surroundings;
    const { timeline } = surroundings;
    this.#projections = this.#records();
    const projections = this.#projections;
    const timers = this.#timers();
    const agents = {
      submit: (agentId, command) => this.agents.submit(agentId, command)
    };
    this.ledgers = new Ledgers({
      submit: (_place, commands3, known2) => this.#call(() => surroundings.ledger().submit(commands3, known2)),
      revisions: {
        read: () => this.#call(() => surroundings.records.ledgerRevision),
        write: (_projectId, revision) => this.#call(() => surroundings.records.writeLedgerRevision(revision))
      },
      recordAccount: accountRecorder({ projections, agents }),
      flushPublished: () => void 0,
      confirmAfterMs: CONFIRM_AFTER_MS2,
      onError,
      timers
    });
    this.agents = new AgentActors({
      submit: (agentId, commands3) => this.#call(() => this.#actorOf(agentId).submit(commands3)),
      ledgers: this.ledgers,
      writeAgent: (summary) => projections.writeAgent(summary),
      onError,
      timers
    });
    const dependencies = {
      rails: this.#rails(),
      projections,
      workflows: this.#workflows(),
      // Subscribers to payments have no part in what becomes of them.
      publisher: { publish: () => Promise.resolve(), flush: () => void 0 },
      // Nothing is forged here.
      proofs: { isAccepted: () => true, isResolvedAsNamed: () => true, onForged: () => void 0 },
      clock: () => new Date(timeline.now),
      monotonicMs: () => timeline.now,
      ledgers: this.ledgers,
      onSweepFailed: onError
    };
    this.#effects = createPaymentEffects(dependencies);
    const recordAccount = accountRecorder({ projections, agents });
    this.activities = {
      ...createPaymentActivities(dependencies),
      writeAccounts: async ({ accounts }) => {
        await Promise.all(accounts.map(recordAccount));
        return accounts.map(({ agentId }) => agentId);
      },
      writeCaps: ({ caps, projectId }) => projections.writeCaps(projectId, caps),
      writeAgent: ({ summary }) => projections.writeAgent(summary),
      followInLedger: async ({ agent, followed: followed2 }) => {
        const { agentId } = agent;
        await this.ledgers.submit(agent, { kind: "follow_agent", agentId, ...followed2 });
      },
      mirrorLimits: ({ limits }) => this.#call(() => limits.map(({ agentId }) => agentId)),
      detachWallet: () => this.#call(() => void 0),
      closeDeliveryWindow: () => this.#call(() => "committed")
    };
  }
  /** As src/payments/payments.ts makes a payment: decides, acts, and leaves to the ledger what can't be had in time. */
  async pay(profile, keyId, request) {
    const { agentId } = profile;
    const { approvalWindowSeconds, domain } = this.#surroundings;
    let recordsCheckedThrough = this.ledgers.closedOf(agentId);
    for (let attempt2 = 0; attempt2 < DECISION_ATTEMPTS_MAX; attempt2 += 1) {
      const areRecordsChecked = recordsCheckedThrough > 0;
      const { keyHash, fingerprint } = request;
      const { earlier, similarAt, rules } = await this.#call(
        () => this.#checkRecords(profile, { keyHash, fingerprint })
      );
      if (areRecordsChecked && earlier !== void 0) return replayOf2(request, earlier);
      const requested = { ...request, rulesVersions: rules.versions };
      const withLike = areRecordsChecked && similarAt !== null ? { similarAt } : {};
      const ruled = { checks: rules.checks, ...withLike };
      const { requestedMs, reply } = await this.ledgers.submitRecorded(profile, {
        kind: "pay",
        agentId,
        keyId,
        request: requested,
        approvalWindowSeconds,
        recordsCheckedThrough,
        ...rules.checks.length > 0 ? { rules: ruled } : {}
      });
      switch (reply.kind) {
        case "records_check_required":
          recordsCheckedThrough = reply.closed;
          break;
        case "stale_rules":
          break;
        case "decided":
          return this.#execute(
            profile,
            domain.decidedPayment(requested, reply.decision),
            reply.permit === null ? {} : { decided: { permit: reply.permit, requestedMs } }
          );
        case "replayed":
          if (!reply.samePayload) return null;
          await this.#execute(profile, reply.payment);
          return this.#recorded(reply.transactionId);
        case "recorded":
          return earlier === void 0 ? null : replayOf2(request, earlier);
        default:
          return null;
      }
    }
    throw new Unavailable("the records do not keep up with the ledger");
  }
  #checkRecords({ agentId, teamId }, { keyHash, fingerprint }) {
    const { records } = this.#surroundings;
    const [project, team] = [records.rules.get(null), records.rules.get(teamId)];
    const checks = [...project?.checks ?? [], ...team?.checks ?? []];
    return {
      earlier: records.under(agentId, keyHash),
      similarAt: checks.length > 0 ? records.newestSimilarAt(agentId, fingerprint) : null,
      rules: { checks, versions: { project: project?.version ?? null, team: team?.version ?? null } }
    };
  }
  /** Puts a person's or the agent's decision on a payment on hold to the ledger, and tells its workflow. */
  async resolve(profile, command) {
    const reply = await this.ledgers.submit(profile, command);
    if (reply.kind !== "payment") return;
    if (reply.changed || reply.payment.status === "expired") await this.#execute(profile, reply.payment);
  }
  /** As server/handlers/agents.ts: answered once the record shows it, and the rails are fenced. */
  async setAccountStatus(profile, kind, requestId2) {
    const { agentId } = profile;
    const { observer, records } = this.#surroundings;
    const { reply, revision } = await this.ledgers.submitRecorded(profile, { kind, agentId, requestId: requestId2 });
    if (reply.kind !== "account_status") return;
    await this.ledgers.flush(profile, agentId);
    const recorded = await this.#call(() => records.agents.get(agentId)?.account.revision ?? 0);
    if (recorded < revision) throw new Unavailable("the record does not follow its ledger");
    await layFences(this.#rails(), reply.fence === null ? [] : [reply.fence]);
    if (kind === "pause") observer.pauseAnswered(agentId);
  }
  async changeKey(agentId, command) {
    const reply = await this.agents.submit(agentId, command);
    const isRevoked = command.kind === "revoke_key" && reply.kind === "key";
    if (isRevoked) this.#surroundings.observer.keyAnswered(agentId, reply.keyId);
    return reply;
  }
  /** As server/handlers/archive-agent.ts. */
  async archive(profile) {
    const { agentId } = profile;
    const { observer, records } = this.#surroundings;
    try {
      const reply = await this.agents.submit(agentId, { kind: "archive", by: { type: "user" } });
      if (reply.kind !== "archive") return;
    } catch (error) {
      if (!(error instanceof NoSuchActor)) throw error;
    }
    observer.archiveAnswered(agentId, await this.#call(() => records.agents.get(agentId)?.life));
    const pending = await this.#call(
      () => [...records.pending].flatMap(([transactionId, of]) => of === agentId ? [transactionId] : [])
    );
    for (const transactionId of pending) {
      const read = await this.ledgers.submit(profile, { kind: "read_payment", agentId, transactionId });
      if (read.kind === "payment" && read.payment.phase !== "held")
        await this.#execute(profile, read.payment);
    }
  }
  /** As src/containers/container-budgets.ts replaces a budget: in force once it is decided, answered once it is recorded. */
  async replace(command) {
    const { observer, place, records } = this.#surroundings;
    const reply = await this.ledgers.submit(place, command);
    if (reply.kind !== "replaced") return;
    await this.#projections.writeCaps(place.projectId, reply.caps);
    const caps = reply.caps.map(({ cap, teamId }) => ({ teamId, version: cap.version }));
    await this.ledgers.submit(place, { kind: "confirm_caps", caps });
    const answered = await this.#call(
      () => reply.caps.map(({ cap, teamId }) => ({ teamId, cap, recorded: records.cap(teamId) }))
    );
    observer.capsAnswered(answered);
  }
  /** Rules live in the records, and the ledger receives their version before any caller is answered. */
  async putRules(teamId, checks) {
    const { observer, place, records } = this.#surroundings;
    const version = await this.#call(() => {
      const next2 = (records.rules.get(teamId)?.version ?? 1) + 1;
      records.rules.set(teamId, { version: next2, checks });
      return next2;
    });
    await this.ledgers.submit(place, { kind: "follow_rules", teamId, version });
    observer.rulesAnswered(teamId, version);
  }
  submit(command) {
    return this.ledgers.submit(this.#surroundings.place, command);
  }
  async #execute(profile, payment, hints) {
    const { network } = this.#surroundings;
    try {
      const late = network.sleep(this.host, PAY_MS).then(() => {
        throw new Unavailable("not in time");
      });
      return await Promise.race([this.#confirmed(profile, payment, hints), late]);
    } catch (error) {
      if (error instanceof Superseded) return this.#recorded(payment.request.transactionId);
      await this.#effects.record(profile, payment);
      if (payment.phase === "held") throw error;
      return payment;
    }
  }
  async #confirmed(profile, payment, hints) {
    const done = await this.#effects.execute(profile, payment, "server", hints);
    const published = this.#effects.publish(profile, done.payment, "soon");
    this.ledgers.confirmLater(profile, confirmationOf(profile.agentId, done), published);
    return done.payment;
  }
  #recorded(transactionId) {
    return this.#call(() => this.#surroundings.records.payments.get(transactionId) ?? null);
  }
  #call(work) {
    return this.#surroundings.network.call(this.host, work);
  }
  #actorOf(agentId) {
    const actor = this.#surroundings.agents.get(agentId);
    if (actor === void 0 || actor.hasEnded) throw new NoSuchActor(agentId);
    return actor;
  }
  #timers() {
    const { timeline } = this.#surroundings;
    return {
      after: (ms, run) => {
        let isCancelled = false;
        timeline.after(ms, () => {
          if (this.host.isAlive && !isCancelled) run();
        });
        return () => {
          isCancelled = true;
        };
      },
      monotonicMs: () => timeline.now
    };
  }
  #records() {
    const { records } = this.#surroundings;
    return {
      writePayment: (profile, payment) => this.#call(() => records.writePayment(profile, payment)),
      endOf: (transactionId) => this.#call(() => records.endOf(transactionId)),
      writeAgent: (summary) => this.#call(() => records.writeAgentRecord(summary)),
      writeAccount: (summary) => this.#call(() => records.writeAccount(summary)),
      writeCaps: (_projectId, caps) => this.#call(() => records.writeCaps(caps))
    };
  }
  #rails() {
    const { processor } = this.#surroundings;
    const query = (payment) => this.#call(() => processor.query(payment.request.transactionId));
    const rail = {
      capabilities: { finality: "instant", reversible: true },
      send: (_profile, payment, permit) => this.#call(() => processor.charge(payment, permit)),
      fence: (places) => this.#call(() => places.forEach((place) => processor.fence(place))),
      withhold: (_profile, payment) => this.#call(() => processor.withhold(payment)),
      query,
      settle: (_profile, payment) => query(payment),
      reverse: () => Promise.resolve("not_reversible"),
      balance: () => Promise.resolve({ kind: "none" }),
      detach: () => Promise.resolve("detached")
    };
    return perRail(() => rail);
  }
  /** Starting and telling a workflow are messages, too. */
  #workflows() {
    const { workflows } = this.#surroundings;
    const sent = async (work) => await (await this.#call(() => ({ done: work() }))).done;
    return {
      startApproval: (profile, payment) => sent(() => workflows.startApproval(profile, payment)),
      notifyApproval: (profile, payment) => sent(() => workflows.notifyApproval(profile, payment)),
      startSettlement: (profile, payment) => sent(() => workflows.startSettlement(profile, payment))
    };
  }
};
var replayOf2 = ({ payloadHash }, earlier) => earlier.request.payloadHash === payloadHash ? earlier : null;

// scripts/simulation/timeline.ts
var isBefore = (one, other) => one.at < other.at || one.at === other.at && one.order < other.order;
var Queue = class {
  #heap = [];
  get size() {
    return this.#heap.length;
  }
  push(planned) {
    const heap = this.#heap;
    let index = heap.push(planned) - 1;
    while (index > 0) {
      const above = index - 1 >> 1;
      const parent = heap[above];
      if (parent === void 0 || !isBefore(planned, parent)) break;
      heap[index] = parent;
      index = above;
    }
    heap[index] = planned;
  }
  pop() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === void 0 || last === void 0 || heap.length === 0) return first;
    let index = 0;
    for (; ; ) {
      let below = 2 * index + 1;
      const left = heap[below];
      const right = heap[below + 1];
      if (left === void 0) break;
      const least = right !== void 0 && isBefore(right, left) ? right : left;
      if (least === right) below += 1;
      if (!isBefore(least, last)) break;
      heap[index] = least;
      index = below;
    }
    heap[index] = last;
    return first;
  }
};
var Timeline = class {
  #queue = new Queue();
  #order = 0;
  #busy = 0;
  #now;
  constructor(startsAt) {
    this.#now = startsAt;
  }
  /** Epoch milliseconds. */
  get now() {
    return this.#now;
  }
  /** Whether all that is left is idle. */
  get isAtRest() {
    return this.#busy === 0;
  }
  after(ms, run, idle = false) {
    this.#order += 1;
    if (!idle) this.#busy += 1;
    this.#queue.push({ at: this.#now + Math.max(0, ms), order: this.#order, idle, run });
  }
  sleep(ms, idle = false) {
    return new Promise((resolve3) => {
      this.after(ms, resolve3, idle);
    });
  }
  /** Lets the next thing happen, to its end; false when nothing is planned. */
  async step() {
    const next2 = this.#queue.pop();
    if (next2 === void 0) return false;
    if (!next2.idle) this.#busy -= 1;
    this.#now = Math.max(this.#now, next2.at);
    next2.run();
    await followed();
    return true;
  }
};
var followed = () => new Promise((resolve3) => void setImmediate(resolve3));

// src/messages/settlement.ts
var SETTLEMENT_POLL_SECONDS = [1, 1, 2, 2, 5, 10, 30, 60, 300, 900];

// scripts/simulation/workflows.ts
var TIMER_DELAY_MAX_MS = 12e4;
var DurableWorkflows = class {
  #timeline;
  #random;
  #activity;
  #approvals = /* @__PURE__ */ new Map();
  #settlements = /* @__PURE__ */ new Set();
  expiries = 0;
  /** `activity` repeats what fails until it succeeds. */
  constructor(timeline, random, activity) {
    this.#timeline = timeline;
    this.#random = random;
    this.#activity = activity;
  }
  startApproval(profile, payment) {
    this.#approvalOf(profile, payment);
    return Promise.resolve();
  }
  notifyApproval(profile, payment) {
    const run = this.#approvalOf(profile, payment);
    if (run !== null) {
      run.notifiedOf ??= payment;
      run.wake();
    }
    return Promise.resolve();
  }
  startSettlement(profile, payment) {
    const { transactionId } = payment.request;
    if (this.#settlements.has(transactionId)) return Promise.resolve();
    this.#settlements.add(transactionId);
    void this.#settle(profile, payment);
    return Promise.resolve();
  }
  #approvalOf(profile, payment) {
    const { approval: approval2 } = payment;
    if (approval2 === null) return null;
    const known2 = this.#approvals.get(approval2.id);
    if (known2 !== void 0) return known2;
    const run = { notifiedOf: null, wake: () => void 0 };
    this.#approvals.set(approval2.id, run);
    void this.#approve(profile, payment.request.transactionId, approval2.expiresAt, run);
    return run;
  }
  async #approve(profile, transactionId, expiresAt, run) {
    if (run.notifiedOf === null) {
      await new Promise((resolve3) => {
        run.wake = resolve3;
        const lateMs = this.#random.chance(0.4) ? this.#random.between(1, TIMER_DELAY_MAX_MS) : 0;
        this.#timeline.after(Math.max(1, expiresAt - this.#timeline.now) + lateMs, resolve3, true);
      });
    }
    let payment = run.notifiedOf;
    if (payment === null) {
      this.expiries += 1;
      payment = await this.#activity((activities) => activities.expireApproval({ profile, transactionId }));
      payment ??= run.notifiedOf;
    }
    if (payment?.phase !== "sending") return;
    const approved2 = payment;
    await this.#activity((activities) => activities.executeApproved({ profile, payment: approved2 }));
  }
  async #settle(profile, sent) {
    let payment = sent;
    for (let polls = 0; payment.phase !== "done"; polls += 1) {
      const pace = SETTLEMENT_POLL_SECONDS[Math.min(polls, SETTLEMENT_POLL_SECONDS.length - 1)] ?? 900;
      await this.#timeline.sleep(pace * 1e3, true);
      const before2 = payment;
      payment = await this.#activity((activities) => activities.followPayment({ profile, payment: before2 }));
    }
  }
};

// scripts/simulation/world.ts
var PROCESSES = 3;
var PLACE = { organizationId: "org-1", projectId: "project-1" };
var TEAMS = ["team-1", "team-2", "team-3"];
var BOUNDS = {
  ...LEDGER_BOUNDS,
  accounts: 24,
  openOfAgent: 5,
  openOfProject: 30,
  closedKeys: 40
};
var ACTIVITY_ATTEMPTS = 4;
var EVENINGS = [Date.UTC(2026, 11, 31, 20), Date.UTC(2028, 1, 28, 20), Date.UTC(2027, 1, 28, 20)];
var APPROVAL_WINDOWS_SECONDS = [60, 3600, 86400];
var DELIVERY_WINDOW_MS = 6e4;
var STORMY = { lost: 0.01, late: 0.05, twice: 0.04 };
var World = class {
  random;
  timeline;
  network;
  records;
  processor;
  ledger;
  agents = /* @__PURE__ */ new Map();
  profiles = [];
  observer;
  #domain;
  #actorDependencies;
  #surroundings;
  #processes = [];
  #workflows;
  /** Clients are no processes of ours, and do not die. */
  clients = new Host("clients");
  #numbered = 0;
  crashes = 0;
  clockSetBack = 0;
  #behindMs = 0;
  constructor(seed, domain, observer) {
    this.random = new Random(seed);
    this.observer = observer;
    this.#domain = domain;
    this.timeline = new Timeline(this.random.pick(EVENINGS));
    this.network = new Network(this.timeline, this.random.fork("network"), STORMY);
    this.records = new Records(observer);
    this.processor = new Processor(this.timeline, observer);
    this.#workflows = new DurableWorkflows(
      this.timeline,
      this.random.fork("timers"),
      (work) => this.#activity(work, Infinity)
    );
    this.#actorDependencies = {
      domain,
      timeline: this.timeline,
      observer,
      activities: this.#activities(),
      now: () => this.engineNow
    };
    const { organizationId, projectId } = PLACE;
    this.ledger = new SimulatedLedger(
      this.#actorDependencies,
      domain.newLedger(organizationId, projectId, BOUNDS)
    );
    this.#surroundings = {
      domain,
      timeline: this.timeline,
      network: this.network,
      observer,
      processor: this.processor,
      records: this.records,
      agents: this.agents,
      ledger: () => this.ledger,
      workflows: this.#workflows,
      place: PLACE,
      approvalWindowSeconds: this.random.pick(APPROVAL_WINDOWS_SECONDS)
    };
    for (let index = 0; index < PROCESSES; index += 1) this.#startProcess();
  }
  /** By the engine's clock, which is what actors go by: it may have gone back. */
  get engineNow() {
    return this.timeline.now - this.#behindMs;
  }
  /** The engine is set up anew on a machine whose clock is behind. */
  setClockBack(ms) {
    this.#behindMs += ms;
    this.clockSetBack += 1;
  }
  /** With nothing under way, the clock is put right. */
  setClockRight() {
    this.#behindMs = 0;
    this.ledger.recheck();
    for (const agent of this.agents.values()) agent.recheck();
  }
  /** Charges that met a fence. */
  get fenced() {
    return this.processor.fenced;
  }
  get sweeps() {
    return this.ledger.sweeps;
  }
  get expiries() {
    return this.#workflows.expiries;
  }
  nextId(prefix) {
    this.#numbered += 1;
    return `${prefix}_${String(this.#numbered)}`;
  }
  /** The process that creates an agent opens its account, starts its actor and writes its record; false: the project is full. */
  createAgent(policy2) {
    const now = this.engineNow;
    const agentId = this.nextId("agent");
    const profile = { ...PLACE, teamId: this.random.pick(TEAMS), agentId, name: agentId };
    const { name, teamId } = profile;
    const keyId = this.nextId("akey");
    const { replies } = this.ledger.submit([{ kind: "open_account", agentId, teamId, name, policy: policy2, keyId }]);
    if (replies[0]?.kind !== "opened") return false;
    const firstKey = { keyId, lineageId: null, deliverableUntil: now + DELIVERY_WINDOW_MS };
    this.observer.agentCreated(profile, firstKey);
    const state = this.#domain.initialAgentState(profile, firstKey, now);
    const account = this.ledger.ledger.accounts.get(agentId);
    if (account === void 0) throw new Error("an account that was opened is gone");
    this.records.agents.set(agentId, { teamId, life: summarize(state), account: summaryOf(account) });
    const onEnded = () => {
      this.agents.delete(agentId);
      if (this.random.chance(0.8)) this.profiles.splice(this.profiles.indexOf(profile), 1);
    };
    this.agents.set(agentId, new SimulatedAgent(this.#actorDependencies, state, onEnded));
    this.profiles.push(profile);
    return true;
  }
  process() {
    return this.random.pick(this.#processes);
  }
  /** A client's request to any process; null where it had no answer, whatever was done. */
  async request(work) {
    const process2 = this.process();
    try {
      return await process2.host.serve(() => work(process2));
    } catch (error) {
      this.#expectFailure(error);
      return null;
    }
  }
  /** A process dies with all that it has in hand, and another takes its place. */
  crash() {
    const died = this.#processes.shift();
    if (died === void 0) return;
    this.crashes += 1;
    died.host.kill();
    this.#startProcess();
  }
  /** Everybody's books, laid open. */
  books() {
    const now = this.engineNow;
    const { ledger } = this.ledger;
    const { accounts } = snapshotPage(ledger, { after: null, limit: Infinity });
    const withViews = accounts.flatMap((account) => {
      const view = accountView(ledger, { agentId: account.agentId, now }, now);
      return view === null ? [] : [[account.agentId, { ...account, view }]];
    });
    return {
      now,
      caps: capsView(ledger),
      accounts: new Map(withViews),
      lives: new Map([...this.agents].map(([agentId, { state }]) => [agentId, summarize(state)])),
      records: this.records.agents,
      recordedCaps: new Map([null, ...TEAMS].map((teamId) => [teamId, this.records.cap(teamId)])),
      paymentRecords: this.records.payments,
      pendingApprovals: new Set(this.records.pending.keys()),
      rail: this.processor.captured()
    };
  }
  /** The cap of the project (null) or a team, as it is now. */
  capOf(teamId) {
    const { ledger } = this.ledger;
    return (teamId === null ? ledger.project : levelOf(ledger, teamId)).cap;
  }
  setWeather(isClear) {
    this.network.weather = isClear ? CLEAR : STORMY;
  }
  #startProcess() {
    this.#processes.push(new ServiceProcess(this.nextId("process"), this.#surroundings));
  }
  #activities() {
    const run = (choose) => (input) => this.#activity((activities) => choose(activities)(input), ACTIVITY_ATTEMPTS);
    return {
      executePayments: run((activities) => activities.executePayments),
      mirrorLimits: run((activities) => activities.mirrorLimits),
      writeAccounts: run((activities) => activities.writeAccounts),
      writeCaps: run((activities) => activities.writeCaps),
      writeAgent: run((activities) => activities.writeAgent),
      followInLedger: run((activities) => activities.followInLedger),
      detachWallet: run((activities) => activities.detachWallet),
      closeDeliveryWindow: run((activities) => activities.closeDeliveryWindow)
    };
  }
  async #activity(work, attempts) {
    for (let attempt2 = 1; ; attempt2 += 1) {
      const process2 = this.process();
      try {
        return await process2.host.serve(() => work(process2.activities));
      } catch (error) {
        this.#expectFailure(error);
        if (attempt2 >= attempts) throw error;
        await this.timeline.sleep(Math.min(6e4, 1e3 * 2 ** Math.min(attempt2, 6)));
      }
    }
  }
  #expectFailure(error) {
    const isExpected = error instanceof Unavailable || error instanceof LineBroken || error instanceof Superseded || error instanceof Fenced || error instanceof NoSuchActor || error instanceof ActorUnavailable;
    if (!isExpected) this.observer.broke("a process", error);
  }
};

// scripts/simulation/workload/budgets.ts
var Budgets = class {
  #world;
  constructor(world) {
    this.#world = world;
  }
  policy(usedCents2 = 0) {
    const { random } = this.#world;
    const some = (probability, value) => random.chance(probability) ? value : null;
    return {
      budgetCents: Math.max(0, usedCents2 + random.between(-50, 1200)),
      autoApprovalThresholdCents: some(0.4, random.pick([0, 10, 25])),
      perTransactionLimitCents: some(0.2, random.between(20, 100)),
      dailySpendLimitCents: some(0.3, random.between(50, 900)),
      hourlyVelocityLimit: some(0.3, random.between(0, 12)),
      dailyVelocityLimit: some(0.2, random.between(1, 60))
    };
  }
  changePolicy() {
    const { random, records } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    const known2 = records.agents.get(agentId)?.account.policyVersion ?? 1;
    const version = random.chance(0.1) ? known2 - 1 : known2;
    const policy2 = this.policy(this.#usedBy(agentId));
    const patch2 = random.chance(0.4) ? { budgetCents: policy2.budgetCents } : random.chance(0.5) ? { autoApprovalThresholdCents: policy2.autoApprovalThresholdCents } : { ...policy2 };
    const requestId2 = this.#world.nextId("request");
    void this.#world.request(
      (process2) => process2.submit({ kind: "change_policy", agentId, patch: patch2, version, requestId: requestId2 })
    );
  }
  replaceProject() {
    const { random } = this.#world;
    const teams = TEAMS.map((teamId) => ({
      teamId,
      capCents: random.chance(0.2) ? this.#cap(teamId) : this.#world.capOf(teamId).capCents
    }));
    this.#replace({
      kind: "replace_project",
      version: this.#version(this.#world.capOf(null).version),
      capCents: this.#cap(null),
      teams,
      requestId: this.#world.nextId("request")
    });
  }
  /** While the one is carried through, the other is decided. */
  replaceBoth() {
    this.replaceProject();
    const { timeline, random } = this.#world;
    timeline.after(random.between(1, 20), () => this.replaceTeam());
  }
  replaceTeam() {
    const { random, records } = this.#world;
    const teamId = random.pick(TEAMS);
    const live = [...records.agents].filter(
      ([, record]) => record.teamId === teamId && record.life.archivedAt === null
    );
    this.#replace({
      kind: "replace_team",
      teamId,
      version: this.#version(this.#world.capOf(teamId).version),
      capCents: this.#cap(teamId),
      agents: live.map(([agentId, { account }]) => ({
        agentId,
        budgetCents: random.chance(0.2) ? Math.max(0, this.#usedBy(agentId) + random.between(-50, 500)) : account.policy.budgetCents
      })),
      requestId: this.#world.nextId("request")
    });
  }
  #replace(command) {
    void this.#world.request((process2) => process2.replace(command));
  }
  #version(current) {
    return this.#world.random.chance(0.1) ? Math.max(1, current - 1) : current;
  }
  #usedBy(agentId) {
    const account = this.#world.records.agents.get(agentId)?.account;
    return account === void 0 ? 0 : account.spentCents + account.reservedCents;
  }
  /** A cap near what is used: little is left, nothing, or less than that; sometimes none at all. */
  #cap(teamId) {
    const { profiles, random } = this.#world;
    if (random.chance(0.35)) return null;
    const within = profiles.filter((profile) => teamId === null || profile.teamId === teamId);
    const used = within.reduce((cents, { agentId }) => cents + this.#usedBy(agentId), 0);
    return Math.max(0, used + random.between(-100, random.chance(0.3) ? 150 : 2500));
  }
};

// scripts/simulation/workload/spans.ts
var SECOND = 1e3;
var MINUTE = 60 * SECOND;
var HOUR2 = 60 * MINUTE;
var DAY2 = 24 * HOUR2;

// scripts/simulation/workload/orders.ts
var REPEATS_MAX = 4;
var RECENT_KEYS_MAX = 200;
var Orders = class {
  #world;
  #orders = [];
  /** A key that each agent had. */
  #keys = /* @__PURE__ */ new Map();
  constructor(world) {
    this.#world = world;
  }
  pay() {
    const { profiles, random } = this.#world;
    const profile = random.chance(0.4) ? profiles[random.between(0, 2)] : random.pick(profiles);
    if (profile !== void 0) this.order(profile, random.between(1, random.chance(0.8) ? 30 : 120));
  }
  order(profile, amountCents) {
    const { random } = this.#world;
    const fate = random.chance(0.4) ? "settle" : random.pick(FATES);
    const afterMs = random.chance(fate === "reverse" ? 0.3 : 0.02) ? 26 * HOUR2 : random.pick([SECOND, 3 * SECOND, 30 * SECOND, 5 * MINUTE]);
    const keyHash = this.#world.nextId("key");
    const order = {
      profile,
      keyHash,
      payloadHash: `payload of ${keyHash}`,
      amountCents,
      recipient: recipientOf({ fate, afterMs }),
      keyId: this.keyOf(profile.agentId)
    };
    this.#orders.push(order);
    if (this.#orders.length > RECENT_KEYS_MAX) this.#orders.shift();
    void this.#place(order);
  }
  /** The same key once more, now and then with another payload. */
  replay() {
    const { random } = this.#world;
    if (this.#orders.length === 0) return;
    const order = random.pick(this.#orders);
    void this.#place(random.chance(0.2) ? { ...order, payloadHash: "another" } : order);
  }
  /** Now and then one that is dead. */
  keyOf(agentId) {
    const { agents, random } = this.#world;
    const own = agents.get(agentId)?.state.access.activeKeyId ?? "akey_dead";
    const known2 = this.#keys.get(agentId) ?? own;
    if (own !== "akey_dead") this.#keys.set(agentId, own);
    return random.chance(0.95) ? own : known2;
  }
  /** A client asks, and asks again under the same key while it has no answer; some give up. */
  async #place(order) {
    const { network, random } = this.#world;
    for (let attempt2 = 0; attempt2 < REPEATS_MAX; attempt2 += 1) {
      const answer = await this.#world.request(
        (process2) => process2.pay(order.profile, order.keyId, this.#requestOf(order))
      );
      if (answer !== null) return this.#answered(order, answer);
      if (random.chance(0.2)) return;
      await network.sleep(this.#world.clients, random.between(1, 5 * SECOND));
    }
  }
  #answered({ keyHash, profile }, { request }) {
    this.#world.observer.clientAnswered(profile.agentId, keyHash, request.transactionId);
  }
  #requestOf({ amountCents, keyHash, payloadHash, recipient }) {
    return {
      transactionId: this.#world.nextId("txn"),
      approvalId: this.#world.nextId("apr"),
      keyHash,
      payloadHash,
      rail: "card",
      amountCents,
      currency: "USD",
      recipient,
      merchantCategory: null,
      purpose: "simulated",
      fingerprint: `${recipient} ${String(amountCents)}`,
      proof: ""
    };
  }
};

// scripts/simulation/workload/workload.ts
var AGENTS_AT_FIRST = 10;
var REVOKE = { kind: "revoke_key" };
var isWaiting = ({ open, status }) => status === "paused" && [...open.values()].some(({ payment }) => payment.phase === "sending");
var Workload = class {
  #world;
  #orders;
  #budgets;
  #weighted;
  #isPaused = false;
  #isPlanned = false;
  constructor(world) {
    this.#world = world;
    this.#orders = new Orders(world);
    this.#budgets = new Budgets(world);
    for (let index = 0; index < AGENTS_AT_FIRST; index += 1) world.createAgent(this.#budgets.policy());
    const actions = [
      [45, () => this.#orders.pay()],
      [6, () => this.#orders.replay()],
      [14, () => this.#resolve()],
      [4, () => this.#budgets.changePolicy()],
      [2, () => this.#budgets.replaceProject()],
      [3, () => this.#budgets.replaceTeam()],
      [1, () => this.#budgets.replaceBoth()],
      [4, () => this.#pauseOrResume()],
      [3, () => this.#changeKey()],
      [1, () => this.#rename()],
      [1, () => this.#putRules()],
      [2, () => this.#archiveOrCreate()],
      [2, () => world.crash()],
      [3, () => this.#rollOver()],
      [0.2, () => world.setClockBack(world.random.pick([1, 300, 5 * SECOND, 5 * MINUTE, HOUR2]))]
    ];
    this.#weighted = actions.flatMap(([weight, action]) => Array.from({ length: weight * 5 }, () => action));
  }
  /** Goes on with requests, one after another at random intervals. */
  resume() {
    this.#isPaused = false;
    this.#plan();
  }
  pause() {
    this.#isPaused = true;
  }
  /** With nothing under way: what a dry run says of a payment, which is then made. */
  probe() {
    const { engineNow: now, ledger, observer, random } = this.#world;
    const profile = random.pick(this.#world.profiles);
    const { agentId } = profile;
    const fingerprint = this.#world.nextId("like");
    const probed = (amountCents2) => accountView(
      ledger.ledger,
      { agentId, now, payment: { rail: "card", recipient: "a shop", amountCents: amountCents2, fingerprint } },
      now
    );
    const view = probed(1);
    if (view === null || view.status === "closed") return;
    const left = random.pick([view.teamRemainingCents, view.projectRemainingCents, view.remainingCents]);
    const some = random.between(1, 60);
    const isExact = left !== null && random.chance(0.7);
    const amountCents = isExact ? Math.max(1, left + random.between(-1, 1)) : some;
    const denial = probed(amountCents)?.assessment?.denial ?? null;
    observer.checked(agentId, amountCents, denial?.code ?? null, now);
    this.#orders.order(profile, amountCents);
  }
  #plan() {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#world.timeline.after(this.#gapMs(), () => this.#act(), true);
  }
  #act() {
    this.#isPlanned = false;
    if (this.#isPaused) return;
    this.#world.random.pick(this.#weighted)();
    this.#plan();
  }
  #gapMs() {
    const { random, timeline } = this.#world;
    const dice = random.next();
    if (dice < 0.7) return random.between(0, 20);
    if (dice < 0.93) return random.between(20, 2 * SECOND);
    if (dice < 0.98) return random.between(SECOND, MINUTE);
    if (dice < 0.995) return random.pick([HOUR2 - 1, HOUR2, 20 * MINUTE, random.between(MINUTE, 3 * HOUR2)]);
    return DAY2 - timeline.now % DAY2 + random.between(-3, 3);
  }
  #resolve() {
    const { random, records } = this.#world;
    const waiting = [...records.pending];
    const chosen = random.chance(0.5) ? waiting[0] : waiting[random.between(0, waiting.length - 1)];
    if (chosen === void 0) return;
    const [transactionId, agentId] = chosen;
    const profile = this.#world.profiles.find((each) => each.agentId === agentId);
    if (profile === void 0) return;
    const by = { userId: "user-1", name: "Ada" };
    const decide2 = () => {
      const of = { agentId, transactionId, requestId: this.#world.nextId("request") };
      const command = random.pick([
        { kind: "approve", ...of, by, proof: "" },
        { kind: "approve", ...of, by, proof: "" },
        { kind: "deny", ...of, by, feedback: "Too dear.", proof: "" },
        { kind: "cancel", ...of }
      ]);
      void this.#world.request((process2) => process2.resolve(profile, command));
    };
    decide2();
    if (random.chance(0.15)) decide2();
  }
  #putRules() {
    const { random } = this.#world;
    const some = (probability, value) => random.chance(probability) ? [value] : [];
    const windowSeconds = random.pick([60, 3600]);
    const checks = [
      ...some(0.3, { type: "velocity", count: random.between(1, 20), windowSeconds }),
      ...some(0.5, { type: "duplicate", windowSeconds })
    ];
    const teamId = random.pick([null, ...TEAMS]);
    void this.#world.request((process2) => process2.putRules(teamId, checks));
  }
  #pauseOrResume() {
    const { random } = this.#world;
    const profile = random.pick(this.#world.profiles);
    const set = (kind) => {
      const requestId2 = this.#world.nextId("request");
      void this.#world.request((process2) => process2.setAccountStatus(profile, kind, requestId2));
    };
    if (random.chance(0.6)) return set("resume");
    set("pause");
    if (random.chance(0.15))
      void this.#world.request((process2) => process2.changeKey(profile.agentId, REVOKE));
    if (random.chance(0.03)) void this.#world.request((process2) => process2.archive(profile));
  }
  /** Whether a payment waits for its agent to be resumed. */
  get isAnyWaiting() {
    return [...this.#world.ledger.ledger.accounts.values()].some(isWaiting);
  }
  /** Resumes the agents with payments that wait for it. */
  resumeWaiting() {
    for (const account of this.#world.ledger.ledger.accounts.values()) {
      const profile = this.#world.profiles.find(({ agentId }) => agentId === account.agentId);
      if (!isWaiting(account) || profile === void 0) continue;
      const requestId2 = this.#world.nextId("request");
      void this.#world.request((process2) => process2.setAccountStatus(profile, "resume", requestId2));
    }
  }
  /** With a pause, a revocation is the emergency stop; a new key takes it back. */
  #changeKey() {
    const { agents, profiles, random } = this.#world;
    const { agentId } = random.pick(profiles);
    const access = agents.get(agentId)?.state.access;
    if (access === void 0) return;
    const put3 = (command) => void this.#world.request((process2) => process2.changeKey(agentId, command));
    if (access.activeKeyId === null) return put3({ kind: "mint_key", keyId: this.#world.nextId("akey") });
    if (random.chance(0.6)) return put3({ kind: "authenticate", keyId: this.#orders.keyOf(agentId) });
    put3({ kind: "revoke_key" });
    const mint = () => put3({ kind: "mint_key", keyId: this.#world.nextId("akey") });
    if (random.chance(0.8)) this.#world.timeline.after(random.between(1, 20 * SECOND), mint);
  }
  #rename() {
    const { agentId } = this.#world.random.pick(this.#world.profiles);
    const command = { kind: "rename", name: this.#world.nextId("name") };
    void this.#world.request((process2) => process2.agents.submit(agentId, command));
  }
  #archiveOrCreate() {
    const { profiles, random } = this.#world;
    if (random.chance(0.5)) this.#world.createAgent(this.#budgets.policy());
    else void this.#world.request((process2) => process2.archive(random.pick(profiles)));
  }
  #rollOver() {
    const { agents, ledger, random } = this.#world;
    const { agentId } = random.pick(this.#world.profiles);
    if (random.chance(0.5)) ledger.continueAsNew();
    else agents.get(agentId)?.continueAsNew();
  }
};

// scripts/simulation/run.ts
var WORLD_STEPS = 4e4;
var BUSY_STEPS = 1500;
var PROBES = 3;
var RESUMED_EVERY_STEPS = 100;
var REST_STEPS_MAX = 2e5;
var QUIET_MS = 15e3;
async function runWorld(seed, stepsMax, domain = realDomain) {
  const auditor = new Auditor();
  const trail = new Trail(auditor);
  const world = new World(seed, domain, trail.observer);
  const workload = new Workload(world);
  let steps = 0;
  const mayGoOn = () => auditor.violation === null && steps < stepsMax;
  const step = async () => {
    steps += 1;
    trail.step = steps;
    if (!await world.timeline.step()) auditor.broke("the world", new Error("has come to a standstill"));
  };
  const isAtRest = () => world.timeline.isAtRest && !auditor.isBehindItsRail && !workload.isAnyWaiting;
  const rest = async () => {
    for (let tries = 0; mayGoOn() && !isAtRest(); tries += 1) {
      if (tries % RESUMED_EVERY_STEPS === 0) workload.resumeWaiting();
      if (tries > REST_STEPS_MAX) auditor.broke("the world", new Error("does not come to rest"));
      await step();
    }
  };
  while (mayGoOn()) {
    world.setWeather(false);
    workload.resume();
    for (let busy = 0; busy < BUSY_STEPS && mayGoOn(); busy += 1) await step();
    workload.pause();
    world.setWeather(true);
    const quietAt = world.timeline.now + QUIET_MS;
    while (mayGoOn() && world.timeline.now < quietAt && !isAtRest()) await step();
    world.setClockRight();
    await rest();
    for (let probe = 0; probe <= PROBES && mayGoOn(); probe += 1) {
      auditor.atRest(world.books());
      if (probe === PROBES) break;
      workload.probe();
      await rest();
    }
  }
  const { violation } = auditor;
  const found = violation === null ? null : { message: violation.message, step: steps, trail: trail.lines() };
  return { seed, steps, counts: countsOf(auditor, world), violation: found };
}
var countsOf = (auditor, world) => ({
  ...Object.fromEntries(auditor.tally),
  messages: world.network.messages,
  sweeps: world.sweeps,
  "windows closed": world.expiries,
  crashes: world.crashes,
  fenced: world.fenced,
  "clocks set back": world.clockSetBack
});
async function runWorlds({
  domain,
  onWorld,
  secondsMax,
  seed,
  stepsMax
}) {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1e3;
  const counts = {};
  let result = { worlds: 0, steps: 0, seconds: 0, counts, failed: null };
  while (result.failed === null && result.steps < stepsMax && seconds() < secondsMax) {
    const world = await runWorld(
      seed + result.worlds,
      Math.min(WORLD_STEPS, stepsMax - result.steps),
      domain
    );
    for (const [what, count] of Object.entries(world.counts)) counts[what] = (counts[what] ?? 0) + count;
    result = {
      worlds: result.worlds + 1,
      steps: result.steps + world.steps,
      seconds: seconds(),
      counts,
      failed: world.violation === null ? null : world
    };
    onWorld?.(world, result);
  }
  return result;
}

// test/domain/support/simulation-faults.ts
var judging = (faulty) => ({ ...realDomain, judge: faulty });
var before = (change) => judging((ledger, command, now) => judge2(ledger, change(ledger, command, now), now));
var after = (change) => judging((ledger, command, now) => {
  const reply = judge2(ledger, command, now);
  change(ledger, command);
  return reply;
});
var PAYING = ["pay", "approve"];
function under(kinds, as) {
  return (ledger, command, now) => {
    if (!kinds.includes(command.kind)) return judge2(ledger, command, now);
    const real = new Map([[null, ledger.project], ...ledger.teams]);
    const shown = new Map([...real].map(([teamId, level]) => [teamId, as(level, teamId)]));
    put2(ledger, (teamId) => shown.get(teamId));
    const reply = judge2(ledger, command, now);
    const moved = new Map([[null, ledger.project], ...ledger.teams]);
    put2(ledger, (teamId) => {
      const [was, is, level] = [shown.get(teamId), moved.get(teamId), real.get(teamId)];
      if (was === void 0 || is === void 0 || level === void 0) return is;
      const totals = {
        spentCents: level.totals.spentCents + is.totals.spentCents - was.totals.spentCents,
        reservedCents: level.totals.reservedCents + is.totals.reservedCents - was.totals.reservedCents
      };
      return { ...level, rulesVersion: is.rulesVersion, totals };
    });
    return reply;
  };
}
function put2(ledger, levelOf2) {
  ledger.project = levelOf2(null) ?? ledger.project;
  for (const teamId of ledger.teams.keys()) {
    const level = levelOf2(teamId);
    if (level !== void 0) ledger.teams.set(teamId, level);
  }
}
var raised = (level, cents) => {
  const { capCents } = level.cap;
  return capCents === null ? level : { ...level, cap: { ...level.cap, capCents: capCents + cents } };
};
var AWAITED_COMMANDS = 6;
function readBeforeAwait() {
  const read = [];
  return (ledger, command, now) => {
    const stale = read.at(0);
    read.push(new Map([[null, ledger.project], ...ledger.teams]));
    if (read.length > AWAITED_COMMANDS) read.shift();
    const asRead = (level, teamId) => ({
      ...level,
      totals: stale?.get(teamId)?.totals ?? level.totals
    });
    return under(PAYING, asRead)(ledger, command, now);
  };
}
function lateCaps() {
  const known2 = /* @__PURE__ */ new Map();
  const earlier = /* @__PURE__ */ new Map();
  return under(PAYING, (level, teamId) => {
    const last = known2.get(teamId) ?? NO_CAP;
    if (last.version !== level.cap.version) earlier.set(teamId, last);
    known2.set(teamId, level.cap);
    return { ...level, cap: { ...level.cap, capCents: (earlier.get(teamId) ?? level.cap).capCents } };
  });
}
var changeAccount = (ledger, agentId, change) => {
  const account = ledger.accounts.get(agentId);
  if (account !== void 0) ledger.accounts.set(agentId, change({ ...account }));
};
var rollingOver = (lose) => ({
  ...realDomain,
  rollOverLedger: (ledger) => {
    const rolledOver = realDomain.rollOverLedger(ledger);
    lose(rolledOver);
    return rolledOver;
  }
});
var simulationFaults = [
  {
    fault: "a team's cap lets one cent more through",
    complaint: "a payment of",
    seed: 2,
    domain: () => judging(under(PAYING, (level, teamId) => teamId === null ? level : raised(level, 1)))
  },
  {
    fault: "the project's cap lets one cent more through",
    complaint: "a payment of",
    seed: 6,
    domain: () => judging(under(PAYING, (level, teamId) => teamId === null ? raised(level, 1) : level))
  },
  {
    fault: "what is used of the caps is read before an await",
    complaint: "a payment of",
    seed: 2,
    domain: () => judging(readBeforeAwait())
  },
  {
    fault: "a payment is judged by caps that were replaced",
    complaint: "a payment of",
    domain: () => judging(lateCaps())
  },
  {
    fault: "a cap that is set later does not count what was spent before",
    complaint: "the totals of",
    domain: () => after((ledger, { kind }) => {
      if (kind === "replace_project") ledger.project = { ...ledger.project, totals: NO_TOTALS };
    })
  },
  {
    fault: "a replaced budget keeps its version",
    complaint: "the cap of the project",
    domain: () => judging((ledger, command, now) => {
      const { version } = ledger.project.cap;
      const reply = judge2(ledger, command, now);
      ledger.project = { ...ledger.project, cap: { ...ledger.project.cap, version } };
      return reply;
    })
  },
  {
    fault: "a team's budget reaches none of its agents",
    complaint: "the version of the policy of",
    seed: 2,
    domain: () => before((_ledger, command) => command.kind === "replace_team" ? { ...command, agents: [] } : command)
  },
  {
    fault: "what is released is not given back to the team",
    complaint: "the totals of team",
    domain: () => judging((ledger, command, now) => {
      const teams = new Map(ledger.teams);
      const reply = judge2(ledger, command, now);
      if (["deny", "cancel", "expire"].includes(command.kind))
        put2(ledger, (teamId) => {
          const [was, is] = [teams.get(teamId ?? ""), ledger.teams.get(teamId ?? "")];
          return was === void 0 || is === void 0 ? void 0 : { ...is, totals: was.totals };
        });
      return reply;
    })
  },
  {
    fault: "what is checked again on approval is held against itself",
    complaint: "the approval of",
    seed: 8,
    domain: () => judging((ledger, command, now) => {
      if (command.kind !== "approve") return judge2(ledger, command, now);
      const open = ledger.accounts.get(command.agentId)?.open.get(command.transactionId);
      const own = open?.payment.request.amountCents ?? 0;
      return under(["approve"], (level) => raised(level, -own))(ledger, command, now);
    })
  },
  {
    fault: "an approval is not checked against the caps again",
    complaint: "the approval of",
    seed: 8,
    domain: () => judging(under(["approve"], (level) => ({ ...level, cap: { ...level.cap, capCents: null } })))
  },
  {
    fault: "a request that comes again is judged again",
    complaint: "the answer to a request that came again",
    domain: () => before((_ledger, command) => {
      const { requestId: _forgotten, ...rest } = command;
      return rest;
    })
  },
  {
    fault: "a closed payment's key is forgotten without a word",
    complaint: "a known key was answered decided",
    seed: 1,
    domain: () => after(({ keys }) => keys.byAgent.clear())
  },
  {
    fault: "an outcome of the rail is dropped",
    complaint: "the totals of",
    domain: () => before((_ledger, command) => command.kind === "confirm" ? { ...command, outcome: null } : command)
  },
  {
    fault: "a paused agent's payment is sent",
    complaint: "permission to send",
    seed: 56,
    domain: () => judging((ledger, command, now) => {
      const reply = judge2(ledger, command, now);
      if (reply.kind !== "permission" || reply.permission.kind !== "wait") return reply;
      return { ...reply, permission: { kind: "send", permit: reply.permission.fence } };
    })
  },
  {
    fault: "a pause does not say what is to be fenced",
    complaint: "what a pause fences",
    seed: 3,
    domain: () => judging((ledger, command, now) => {
      const reply = judge2(ledger, command, now);
      return reply.kind === "account_status" ? { ...reply, fence: null } : reply;
    })
  },
  {
    fault: "a revoked key pays on",
    complaint: "that may pay",
    seed: 7,
    domain: () => judging(
      (ledger, command, now) => command.kind === "follow_agent" && command.keyId === null && !command.isArchived ? { kind: "followed", ended: [] } : judge2(ledger, command, now)
    )
  },
  {
    fault: "the ledger does not receive an archive",
    complaint: "the status of",
    seed: 3,
    domain: () => judging(
      (ledger, command, now) => command.kind === "follow_agent" && command.isArchived ? { kind: "followed", ended: [] } : judge2(ledger, command, now)
    )
  },
  {
    fault: "the actor of an archived agent says that nothing is to be followed",
    complaint: "an archive was answered before the ledger had received it",
    domain: () => ({
      ...realDomain,
      handle: (state, command, now) => {
        const reply = handle(state, command, now);
        if (command.kind === "archive") state.followedRevision = state.revision;
        return reply;
      }
    })
  },
  {
    fault: "payments are judged by rules that were replaced",
    complaint: "a payment that was judged by old rules",
    seed: 1,
    domain: () => before((ledger, command) => {
      if (command.kind === "pay") ledger.project = { ...ledger.project, rulesVersion: 0 };
      return command;
    })
  },
  {
    fault: "a clock that goes back over midnight begins the day anew",
    complaint: "when it was decided",
    seed: 4,
    domain: () => before((ledger, command, now) => {
      if (command.kind !== "pay") return command;
      const date = new Date(now).toISOString().slice(0, 10);
      changeAccount(ledger, command.agentId, (account) => {
        const { day } = account.usage;
        if (day.date <= date) return account;
        return { ...account, usage: { ...account.usage, day: { date, amountCents: 0, count: 0 } } };
      });
      return command;
    })
  },
  {
    fault: "a roll-over forgets the caps",
    complaint: "continue-as-new lost something of the ledger",
    domain: () => rollingOver((ledger) => {
      ledger.project = { ...ledger.project, cap: { ...ledger.project.cap, capCents: null } };
    })
  },
  {
    fault: "a roll-over forgets the idempotency keys",
    complaint: "continue-as-new lost something of the ledger",
    domain: () => rollingOver(({ keys }) => keys.byAgent.clear())
  },
  {
    fault: "nothing is ever swept",
    complaint: "the record of",
    seed: 15,
    domain: () => after((ledger) => {
      for (const account of ledger.accounts.values())
        for (const [id, open] of account.open)
          account.open.set(id, { ...open, confirmedRevision: open.payment.revision });
    })
  }
];

// seeds-tmp.ts
var mode = process.argv[2];
if (mode === "world") {
  for (let seed = Number(process.argv[3]); seed < Number(process.argv[4]); seed++) {
    const { counts, violation, steps } = await runWorld(seed, 4e4);
    console.log(seed, steps, violation?.message ?? "ok", JSON.stringify(Object.fromEntries(["look up", "fenced", "pause answered", "permission: wait", "permission: send", "sending", "paused", "captured"].map((k) => [k, counts[k] ?? 0]))));
  }
} else {
  const f = simulationFaults.find(({ fault }) => fault === process.argv[3]);
  for (let seed = 1; seed < 60; seed++) {
    const { failed: failed2 } = await runWorlds({ seed, stepsMax: 4e4, secondsMax: Infinity, domain: f.domain() });
    const m = failed2?.violation?.message ?? "none";
    if (m.includes(f.complaint)) {
      console.log("FOUND", seed, m);
      break;
    } else console.log(seed, m);
  }
}
