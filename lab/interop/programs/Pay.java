import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.AgentsApi;
import org.openapitools.client.api.PaymentsApi;
import org.openapitools.client.model.CardPayment;
import org.openapitools.client.model.CreateAgentRequest;
import org.openapitools.client.model.CreatePaymentRequest;

/** Provisions an agent and makes its first payment by the client of openapi-generator. */
public class Pay {
  static ApiClient client(String key) {
    var client = new ApiClient();
    client.updateBaseUri(System.getenv("BASE_URL"));
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
    return client;
  }

  public static void main(String[] args) throws Exception {
    var run = System.getenv("RUN");
    var agent = new CreateAgentRequest()
        .name("Java")
        .teamId(UUID.fromString(System.getenv("TEAM_ID")))
        .budgetCents(10_000L)
        .idempotencyKey("agent-" + run);
    var created = new AgentsApi(client(System.getenv("ORGANIZATION_KEY"))).createAgent(agent);
    var payment = new CardPayment()
        .rail(CardPayment.RailEnum.CARD)
        .merchant("Acme")
        .amountCents(1_200L)
        .purpose("a domain")
        .idempotencyKey("payment-" + run);
    var paid = new PaymentsApi(client(created.getApiKey())).createPayment(new CreatePaymentRequest(payment), null);
    System.out.println(paid.getTransaction().getStatus().getValue());
  }
}
