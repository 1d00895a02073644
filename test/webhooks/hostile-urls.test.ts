import { expect } from "chai";
import { GuardedFetch, type GuardOptions } from "../../src/lib/guarded-fetch/guarded-fetch.ts";
import { PlainError } from "../../src/lib/plain-error.ts";
import { newAuthority } from "../support/certificates/authority.ts";

const PUBLIC = "93.184.215.14";

const FORM = /^must be a URL/;
const HTTPS = /^must be https$/;
const USER = /user name or a password/;
const FRAGMENT = /fragment/;
const LENGTH = /at most 2,048 characters/;
const NAME = /must name a host as the DNS does/;
const CLOSED_NAME = /must name a host of the public internet/;
const LITERAL = /^has an address that is not public$/;
const RESOLVED = /^resolves to an address that is not public$/;
const PORT = /^must have the port 443 or 8443$/;
const UNRESOLVED = /could not be resolved/;

/** What must be refused, and what its giver is told. Every name resolves to a public address here. */
const REFUSED: readonly (readonly [url: string, told: RegExp])[] = [
  // What is no URL, or not one that all programs read alike.
  ["", FORM],
  ["hooks.acme.com", FORM],
  ["//hooks.acme.com/", FORM],
  ["https:hooks.acme.com", FORM],
  ["https:/hooks.acme.com", FORM],
  ["https:///hooks.acme.com", FORM],
  ["https://", FORM],
  ["https://?x", FORM],
  ["https://:443/", FORM],
  [" https://hooks.acme.com/", FORM],
  ["https://hooks.acme.com/\r\nhost: 127.0.0.1", FORM],
  ["https://hooks.acme.com/\u0000", FORM],
  ["ht\ntps://hooks.acme.com/", FORM],
  ["https:\\\\hooks.acme.com/", FORM],
  ["https://hooks.acme.com\\@127.0.0.1/", FORM],
  ["https://[::1/", FORM],
  ["https://[::1%25lo]/", FORM],
  ["https://hooks.acme.com:99999/", FORM],
  ["https://hooks.acme.com:80a/", FORM],
  ["https://1.2.3.4.5/", FORM],
  ["https://256.1.1.1/", FORM],
  ["https://hooks acme.com/", FORM],
  ["https://hooks%00.acme.com/", FORM],
  [`https://hooks.acme.com/${"a".repeat(2_048)}`, LENGTH],
  // Other schemes.
  ["http://hooks.acme.com/", HTTPS],
  ["ftp://hooks.acme.com/", HTTPS],
  ["file:///etc/passwd", HTTPS],
  ["gopher://hooks.acme.com/_x", HTTPS],
  ["javascript:alert(1)", HTTPS],
  ["data:text/plain,x", HTTPS],
  ["wss://hooks.acme.com/", HTTPS],
  ["unix:/var/run/docker.sock", HTTPS],
  // Parts that a URL may not have.
  ["https://user@hooks.acme.com/", USER],
  ["https://user:password@hooks.acme.com/", USER],
  ["https://@hooks.acme.com/", USER],
  ["https://hooks.acme.com:443@127.0.0.1/", USER],
  ["https://hooks.acme.com/#part", FRAGMENT],
  ["https://hooks.acme.com/#", FRAGMENT],
  // Names that are none, and names of local networks and of clouds.
  ["https://hooks.acme.com./", NAME],
  ["https://hooks..acme.com/", NAME],
  ["https://.acme.com/", NAME],
  ["https://-hooks.acme.com/", NAME],
  ["https://*.acme.com/", NAME],
  [`https://${"a".repeat(64)}.com/`, NAME],
  [`https://${"a.".repeat(127)}com/`, NAME],
  ["https://localhost/", CLOSED_NAME],
  ["https://LOCALHOST/", CLOSED_NAME],
  ["https://localhost./", NAME],
  ["https://ｌｏｃａｌｈｏｓｔ/", CLOSED_NAME],
  ["https://loc%61lhost/", CLOSED_NAME],
  ["https://anything.localhost/", CLOSED_NAME],
  ["https://localhost.localdomain/", CLOSED_NAME],
  ["https://metadata/", CLOSED_NAME],
  ["https://metadata.google.internal/computeMetadata/v1/", CLOSED_NAME],
  ["https://metadata.azure.com/", CLOSED_NAME],
  ["https://metadata.tencentyun.com/", CLOSED_NAME],
  ["https://printer.local/", CLOSED_NAME],
  ["https://router.home.arpa/", CLOSED_NAME],
  ["https://1.0.0.127.in-addr.arpa/", CLOSED_NAME],
  ["https://kubernetes.default.svc/", CLOSED_NAME],
  ["https://kubernetes.default.svc.cluster.local/", CLOSED_NAME],
  ["https://wiki.corp/", CLOSED_NAME],
  ["https://hidden.onion/", CLOSED_NAME],
  // IPv4, however it is written.
  ["https://127.0.0.1/", LITERAL],
  ["https://127.0.0.1./", LITERAL],
  ["https://127.1/", LITERAL],
  ["https://2130706433/", LITERAL],
  ["https://0x7f000001/", LITERAL],
  ["https://0x7f.1/", LITERAL],
  ["https://0177.0.0.1/", LITERAL],
  ["https://017700000001/", LITERAL],
  ["https://127.0.0.1:8443/", LITERAL],
  ["https://%31%32%37.0.0.1/", LITERAL],
  ["https://１２７.０.０.１/", LITERAL],
  ["https://127。0。0。1/", LITERAL],
  ["https://①②⑦.⓪.⓪.①/", LITERAL],
  ["https://0/", LITERAL],
  ["https://0.0.0.0/", LITERAL],
  ["https://10.0.0.1/", LITERAL],
  ["https://172.16.0.1/", LITERAL],
  ["https://172.31.255.255/", LITERAL],
  ["https://192.168.1.1/", LITERAL],
  ["https://100.64.0.1/", LITERAL],
  ["https://100.100.100.200/latest/meta-data/", LITERAL],
  ["https://168.63.129.16/", LITERAL],
  ["https://169.254.169.254/latest/meta-data/", LITERAL],
  ["https://2852039166/", LITERAL],
  ["https://192.0.0.192/", LITERAL],
  ["https://192.0.2.1/", LITERAL],
  ["https://192.88.99.1/", LITERAL],
  ["https://198.18.0.1/", LITERAL],
  ["https://198.51.100.1/", LITERAL],
  ["https://203.0.113.1/", LITERAL],
  ["https://224.0.0.1/", LITERAL],
  ["https://240.0.0.1/", LITERAL],
  ["https://255.255.255.255/", LITERAL],
  // IPv6, and IPv4 within it.
  ["https://[::]/", LITERAL],
  ["https://[::1]/", LITERAL],
  ["https://[0:0:0:0:0:0:0:1]/", LITERAL],
  ["https://[::127.0.0.1]/", LITERAL],
  ["https://[::93.184.215.14]/", LITERAL],
  ["https://[::ffff:127.0.0.1]/", LITERAL],
  ["https://[::ffff:7f00:1]/", LITERAL],
  ["https://[::ffff:93.184.215.14]/", LITERAL],
  ["https://[::ffff:0:127.0.0.1]/", LITERAL],
  ["https://[64:ff9b::127.0.0.1]/", LITERAL],
  ["https://[64:ff9b:1::a9fe:a9fe]/", LITERAL],
  ["https://[2002:7f00:1::]/", LITERAL],
  ["https://[2001:0:7f00:1::]/", LITERAL],
  ["https://[2606:4700::5efe:7f00:1]/", LITERAL],
  ["https://[2001:20::1]/", LITERAL],
  ["https://[2001:db8::1]/", LITERAL],
  ["https://[3fff::1]/", LITERAL],
  ["https://[fc00::1]/", LITERAL],
  ["https://[fd00:ec2::254]/", LITERAL],
  ["https://[fe80::1]/", LITERAL],
  ["https://[fec0::1]/", LITERAL],
  ["https://[ff02::1]/", LITERAL],
  ["https://[100::1]/", LITERAL],
  ["https://[4000::1]/", LITERAL],
  ["https://[5f00::1]/", LITERAL],
  // Ports of other services.
  ["https://hooks.acme.com:22/", PORT],
  ["https://hooks.acme.com:25/", PORT],
  ["https://hooks.acme.com:80/", PORT],
  ["https://hooks.acme.com:6379/", PORT],
  ["https://hooks.acme.com:0/", PORT],
  ["https://93.184.215.14:27017/", PORT],
];

const FINE: readonly string[] = [
  "https://hooks.acme.com/",
  "https://hooks.acme.com",
  "HTTPS://Hooks.Acme.COM/Path",
  "https://hooks.acme.com:443/",
  "https://hooks.acme.com:8443/v1/hooks",
  "https://acme.com/?a=b&c=https://127.0.0.1/",
  "https://acme.com/@someone/a//b",
  "https://acme.com/%23part",
  "https://bücher.acme.com/",
  "https://xn--bcher-kva.acme.com/",
  "https://a_b.acme.com/",
  "https://1e100.net/",
  "https://internal.acme.com/",
  "https://localhost.acme.com/",
  `https://${PUBLIC}/`,
  "https://1.1.1.1:8443/",
  "https://[2606:4700:4700::1111]/",
];

/** What a name may resolve to that is not public, besides the addresses above. */
const CLOSED_ANSWERS: readonly string[] = [
  "127.0.0.1",
  "169.254.169.254",
  "10.1.2.3",
  "::1",
  "::ffff:10.1.2.3",
  "::ffff:93.184.215.14",
  "fe80::1%eth0",
  "2606:4700::1%eth0",
  "fd00:ec2::254",
  "64:ff9b::a00:1",
  "0177.0.0.1",
  "2130706433",
  "not an address",
  "",
];

const guard = (options: Partial<GuardOptions> = {}): GuardedFetch =>
  new GuardedFetch({ allowCidrs: [], extraCa: null, resolve: async () => [PUBLIC], ...options });

const sent = async (guarded: GuardedFetch, url: string): Promise<string> => {
  const outcome = await guarded.send({ url, method: "POST", headers: {}, body: "{}", timeoutMs: 5_000 });
  return outcome.kind === "failed" ? outcome.reason : "answered";
};

const REASON_OF = new Map([
  [LITERAL, "its address is not public"],
  [PORT, "its port is not allowed"],
]);

describe("hostile URLs", () => {
  it("none of them passes the judgement, and their giver is told what is wrong", async () => {
    const guarded = guard();
    for (const [url, told] of REFUSED) expect(await guarded.judge(url), url).to.match(told);
  });

  it("nothing is sent to any of them, and the reason tells no address", async () => {
    const guarded = guard();
    for (const [url, told] of REFUSED)
      expect(await sent(guarded, url), url).to.equal(REASON_OF.get(told) ?? "its URL is not allowed");
  });

  it("ordinary URLs pass", async () => {
    const guarded = guard({ resolve: async () => [PUBLIC, "2606:4700:4700::1111"] });
    for (const url of FINE) expect(await guarded.judge(url), url).to.equal(null);
  });

  it("a name that resolves to what is not public is refused by the judgement and when sending", async () => {
    for (const address of CLOSED_ANSWERS) {
      const guarded = guard({ resolve: async () => [address] });
      expect(await guarded.judge("https://hooks.acme.com/"), address).to.match(RESOLVED);
      expect(await sent(guarded, "https://hooks.acme.com/"), address).to.equal("its address is not public");
    }
  });

  it("a name that cannot be resolved, or has no address, is told as that", async () => {
    const failing = guard({ resolve: async () => Promise.reject(new Error("ENOTFOUND")) });
    for (const guarded of [failing, guard({ resolve: async () => [] })]) {
      expect(await guarded.judge("https://hooks.acme.com/")).to.match(UNRESOLVED);
      expect(await sent(guarded, "https://hooks.acme.com/")).to.equal("its name could not be resolved");
    }
  });

  it("the judgement waits three seconds for a name that is never resolved, and no longer", async () => {
    const guarded = guard({ resolve: () => new Promise(() => {}) });
    const began = performance.now();
    expect(await guarded.judge("https://hooks.acme.com/")).to.match(UNRESOLVED);
    expect(performance.now() - began).to.be.within(2_900, 20_000);
  });

  it("a name of a local network is not even looked up", async () => {
    let lookups = 0;
    const guarded = guard({
      resolve: async () => {
        lookups += 1;
        return [PUBLIC];
      },
    });
    await guarded.judge("https://metadata.google.internal/");
    await sent(guarded, "https://localhost/");
    expect(lookups).to.equal(0);
  });
});

describe("networks that are allowed besides the public internet", () => {
  const local = guard({ allowCidrs: ["127.0.0.0/8", "::1/128"], resolve: async () => ["127.0.0.1", "::1"] });

  it("open local names, addresses and any port there", async () => {
    for (const url of [
      "https://localhost:9/",
      "https://127.0.0.1:9/",
      "https://[::1]:9/",
      "https://a.local/",
    ])
      expect(await local.judge(url), url).to.equal(null);
  });

  it("open no other network and no other port", async () => {
    expect(await local.judge("https://10.0.0.1/")).to.match(LITERAL);
    expect(await local.judge(`https://${PUBLIC}:9/`)).to.match(PORT);
    expect(await local.judge("https://127.0.0.1:0/")).to.match(PORT);
  });

  it("are compared by kind: IPv4 within IPv6 stays refused, whatever is allowed", async () => {
    const open = guard({ allowCidrs: ["0.0.0.0/0", "::/0"] });
    for (const host of [
      "::ffff:127.0.0.1",
      "::127.0.0.1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "2001:0:7f00:1::",
    ])
      expect(await open.judge(`https://[${host}]/`), host).to.match(LITERAL);
    const four = guard({ allowCidrs: ["0.0.0.0/0"] });
    expect(await four.judge("https://[::1]/")).to.match(LITERAL);
    const six = guard({ allowCidrs: ["::/0"] });
    expect(await six.judge("https://127.0.0.1/")).to.match(LITERAL);
  });

  it("do not open a local name that resolves to the public internet", async () => {
    const guarded = guard({ allowCidrs: ["127.0.0.0/8"] });
    expect(await guarded.judge("https://localhost/")).to.match(CLOSED_NAME);
  });

  it("do not lend their ports to a name that has a public address too", async () => {
    const guarded = guard({ allowCidrs: ["127.0.0.0/8"], resolve: async () => ["127.0.0.1", PUBLIC] });
    expect(await guarded.judge("https://hooks.acme.com:9/")).to.match(PORT);
    expect(await guarded.judge("https://hooks.acme.com/")).to.equal(null);
  });

  it("must be networks, so that a mistake does not open or close something in silence", () => {
    for (const cidr of [
      "localhost",
      "127.0.0.1",
      "127.1/8",
      "127.0.0.0/33",
      "::1/129",
      "::ffff:7f00:0/104",
      "1.2.3.4/",
    ])
      expect(() => guard({ allowCidrs: [cidr] }), cidr).to.throw(PlainError);
  });

  it("more ports can be allowed on public addresses", async () => {
    const guarded = guard({ allowPorts: [9443] });
    expect(await guarded.judge("https://hooks.acme.com:9443/")).to.equal(null);
    expect(await guarded.judge("https://hooks.acme.com:9444/")).to.equal(
      "must have the port 443 or 8443 or 9443",
    );
  });

  it("authorities that are trusted besides the usual ones must be certificates", () => {
    const { caPem } = newAuthority();
    expect(() => guard({ extraCa: `${caPem}\n${caPem}` })).not.to.throw();
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
    for (const extraCa of ["", "no certificate", broken, `${caPem}${broken}`])
      expect(() => guard({ extraCa }), extraCa).to.throw(PlainError);
  });
});
