package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func redactor(t *testing.T, o Options) *Redactor {
	t.Helper()
	if o.Key == nil {
		o.Key = func() ([]byte, error) { return []byte("a key"), nil }
	}
	r, err := New(o)
	require.NoError(t, err)
	return r
}

// secrets are one of every form, put together here so that no scanner takes this file for a leak.
var secrets = []struct{ kind, before, secret, after string }{
	{"anthropic-key", "key: ", "sk-" + "ant-api03-" + strings.Repeat("aB3_", 20) + "-AA", "\n"},
	{"openai-key", "key=", "sk-" + strings.Repeat("aB3d", 12), ";"},
	{"openai-key", `"`, "sk-" + "proj-" + strings.Repeat("aB3-", 12), `"`},
	{"openai-key", "", "sk-" + "or-v1-" + strings.Repeat("0af3", 16), ""},
	{"aws-access-key", "id ", "AKIA" + "IOSFODNN7EXAMPLE", " "},
	{"aws-secret-key", "aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY", "\n"},
	{"aws-secret-key", "AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY", "\n"},
	{"aws-secret-key", `"SecretAccessKey": "`, "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY", `"`},
	{"github-token", "https://x:", "ghp_" + strings.Repeat("aB3d", 9), " "},
	{"github-token", "", "gho_" + strings.Repeat("aB3d", 9), ""},
	{"github-token", "", "ghs_" + strings.Repeat("aB3d", 9), ""},
	{"github-token", "", "github_" + "pat_" + strings.Repeat("aB3_", 20), "."},
	{"gitlab-token", "", "glpat-" + strings.Repeat("aB3d", 5), "\n"},
	{"slack-token", "", "xoxb-" + "123456789012-" + strings.Repeat("aB3d", 6), " "},
	{"slack-token", "", "xapp-" + "1-A0123456789-" + strings.Repeat("a3f0", 8), " "},
	{"slack-webhook", "https://hooks.slack.com/services/", "T00000000/B00000000/" + strings.Repeat("aB3d", 6), "\n"},
	{"google-key", "?key=", "AIza" + strings.Repeat("aB3d-", 7), "&x"},
	{"google-token", "", "ya29." + strings.Repeat("aB3_", 10), " "},
	{"google-secret", "", "GOCSPX-" + strings.Repeat("aB3_", 7), " "},
	{"azure-key", "AccountName=a;AccountKey=", strings.Repeat("aB3d", 21) + "aB==", ";"},
	{"stripe-key", "", "sk_" + "live_" + strings.Repeat("aB3d", 6), ","},
	{"stripe-key", "", "rk_" + "test_" + strings.Repeat("aB3d", 6), ","},
	{"stripe-secret", "", "whsec_" + strings.Repeat("aB3d", 8), ","},
	{"npm-token", "//registry/:_authToken=", "npm_" + strings.Repeat("aB3d", 9), "\n"},
	{"pypi-token", "", "pypi-" + "AgE" + strings.Repeat("aB3d", 20), "\n"},
	{"huggingface-token", "", "hf_" + strings.Repeat("aBcD", 9), "\n"},
	{"sendgrid-key", "", "SG." + strings.Repeat("aB3d", 5) + "." + strings.Repeat("aB3d", 11), "\n"},
	{"vault-token", "token ", "hvs." + strings.Repeat("aB3_", 8), "\n"},
	{"vault-token", "X-Vault-Token: ", "hvb." + strings.Repeat("aB3d", 30), "\n"},
	{"digitalocean-token", "", "dop_" + "v1_" + strings.Repeat("0af3", 16), " "},
	{
		"discord-webhook", "https://discord.com/api/webhooks/" + "123456789012345678/", strings.Repeat("aB3_", 17),
		"\n",
	},
	{"discord-token", "Bot ", "MTk4NjIyNDgzNDcxOTI1" + "MjQ4.Cl2FMQ." + strings.Repeat("aB3", 9), "\n"},
	{"twilio-key", "sid=", "SK" + strings.Repeat("0af3", 8), " "},
	{"twilio-token", "TWILIO_AUTH_TOKEN=", strings.Repeat("0af3", 8), "\n"},
	{"jwt", "token ", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0." + strings.Repeat("aB3-", 10), " end"},
	{
		"private-key", "a\n", "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEow+/=\nabcd\n-----END " +
			"RSA PRIVATE KEY-----",
		"\nb",
	},
	{
		"private-key", `{"key":"`, "-----BEGIN " + `OPENSSH PRIVATE KEY-----\nMIIEow+/=\n-----END ` +
			"OPENSSH PRIVATE KEY-----", `\n"}`,
	},
	{"private-key", "cut off: ", "-----BEGIN " + "PRIVATE KEY-----\nMIIEow+/=\nabcd", ""},
	{"private-key", "cut off: ", "-----BEGIN " + "PRIVATE KEY-----\nMIIEow+/=\n-----END ", "PRIV"},
	{"authorization", "Authorization: Basic ", "dXNlcjpwYXNz", "\r\n"},
	{"authorization", `-H "authorization: Bearer `, "short-but-so-named", `"`},
	{"bearer-token", "Bearer ", strings.Repeat("aB3.", 8), "\n"},
	{"api-key-header", "x-api-key: ", "0123456789abcdef", "\n"},
	{"passbook-token", "token ", "pbk_" + strings.Repeat("aB3d", 8), "\n"},
	{"passbook-login", "http://k7f3q2.localhost:8400/login?key=", strings.Repeat("AB2", 8) + "AB", "\n"},
	{"passbook-login", "http://127.0.0.1:40155/login?next=%2Fnamespaces&token=", strings.Repeat("AB2", 8) + "AB", "\n"},
	{"google-refresh-token", `"refresh_token": "`, "1//0" + strings.Repeat("aB3_", 20), `"`},
	{"azure-signature", "?sv=2024-11-04&sig=", strings.Repeat("aB3d", 10) + "%2B%3D", "&se=1"},
	{"telegram-token", "bot123456789:", "AA" + strings.Repeat("aB3", 11), "/getMe"},
	{"linear-key", "", "lin_" + "api_" + strings.Repeat("aB3d", 10), "\n"},
	{"fly-token", "", "fo1_" + strings.Repeat("aB3-", 11), "\n"},
	{"fly-token", "FlyV1 ", "fm2_" + strings.Repeat("aB3/", 20) + "==", ","},
	{"doppler-token", "", "dp." + "st.prd." + strings.Repeat("aB3d", 10), "\n"},
	{"doppler-token", "", "dp." + "pt." + strings.Repeat("aB3d", 11), "\n"},
	{"docker-token", "", "dckr_" + "pat_" + strings.Repeat("aB3", 9), "\n"},
	{"docker-login", `{"auths":{"h":{"auth":"`, "dXNlcjpwYXNzd29yZA==", `"}}}`},
	{"databricks-token", "", "dapi" + strings.Repeat("0af3", 8), "\n"},
	{"cookie", "Cookie: ", "session=" + strings.Repeat("aB3d", 6) + "; other=1", "\r\n"},
	{"cookie", "set-cookie: ", "sid=" + strings.Repeat("aB3d", 6), "\r\n"},
	{"netrc-password", "machine api.example.com login me password ", "open-sesame", "\n"},
	{"kubernetes-key", "client-key-data: ", strings.Repeat("aB3d", 12) + "==", "\n"},
	{"url-password", "postgres://me:", "open-sesame", "@host/db"},
}

func TestEveryFormIsRedacted(t *testing.T) {
	r := redactor(t, Options{})
	seen := map[string]bool{}
	for _, s := range secrets {
		t.Run(s.kind, func(t *testing.T) {
			got := r.Text(s.before + s.secret + s.after)
			require.NotContains(t, got, s.secret)
			require.Regexp(t, `\[redacted:[a-z-]+:[0-9a-f]{4}\]`, got)
			require.True(t, strings.HasPrefix(got, s.before+"["), got)
			require.True(t, strings.HasSuffix(got, "]"+s.after), got)
			if s.kind != "github-token" { // one stands where a password does
				require.Equal(t, []string{s.kind}, r.Kinds(s.before+s.secret+s.after))
			}
			require.Equal(t, got, r.Text(got), "what is hidden is not hidden again")
		})
		seen[s.kind] = true
	}
	for _, f := range forms {
		require.True(t, seen[f.name], "%s has no row", f.name)
	}
}

func TestSecretInJSONStringIsRedacted(t *testing.T) {
	r := redactor(t, Options{})
	for _, s := range secrets {
		raw, err := json.Marshal(map[string]string{"result": "line\n" + s.before + s.secret + s.after + "\nline"})
		require.NoError(t, err)
		var back map[string]string
		require.NoError(t, json.Unmarshal([]byte(r.Text(string(raw))), &back), "it stays JSON")
		require.NotContains(t, back["result"], s.secret, s.kind)
	}
}

func TestOtherTextIsUnchanged(t *testing.T) {
	sum := sha256.Sum256([]byte("x"))
	random := rand.New(rand.NewSource(1))
	noise := make([]byte, 300*300+2+64<<10)
	_, err := random.Read(noise)
	require.NoError(t, err)
	picture := image.NewRGBA(image.Rect(0, 0, 300, 300))
	for i := range 300 * 300 {
		picture.Set(i%300, i/300, color.RGBA{noise[i], noise[i+1], noise[i+2], 255})
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, picture))
	r := redactor(t, Options{})
	for name, text := range map[string]string{
		"sha256":         "digest " + hex.EncodeToString(sum[:]) + " sha256:" + hex.EncodeToString(sum[:]),
		"git commit":     "commit 83baae61804e65cc73a7201a7252750c76066a30\n",
		"uuid":           "run 0d5f3c1e-8a55-4c38-9b44-9f4ad1f3f6a2",
		"picture":        `<img src="data:image/png;base64,` + base64.StdEncoding.EncodeToString(b.Bytes()) + `">`,
		"noise":          base64.StdEncoding.EncodeToString(noise),
		"noise for URLs": base64.RawURLEncoding.EncodeToString(noise),
		"noise in hex":   hex.EncodeToString(noise),
		"classes": `<div class="sk-folding-cube sk-spinner-double-bounce-animation"> ` +
			`disk-0123456789abcdef0123 task-sk`,
		"prose": "The bearer of internationalization-certificates; basic authorization: a token bearer " +
			"authentication. The secret key is love.",
		"names": "ANTHROPIC_API_KEY, aws_secret_access_key, x-api-key and Authorization: Bearer $TOKEN",
		"addresses": "http://127.0.0.1:8233/namespaces/default me@example.com git@github.com:a/b.git " +
			"https://a:b/c file:///x",
		"a certificate": "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----",
		"a public key": "-----BEGIN PUBLIC KEY-----\nMIID\n-----END PUBLIC KEY-----\nssh-ed25519 " +
			"AAAAC3NzaC1lZDI1NTE5AAAAI",
		"cookies":              "The cookie: a small cake. Set-Cookie: theme=dark. Accept cookies=yes",
		"netrc without words":  "machine learning needs a login page and a password field; the bot: AAA",
		"other signatures":     "sig=ok signature=abc dp.width dapi docs auth: none",
		"a call id":            "0d5f3c1e/g0.035.1.-.1.1a2b3c4d5e6f",
		"JSON in base64":       base64.StdEncoding.EncodeToString([]byte(`{"version":3,"sources":["a.ts","b.ts"]}`)),
		"placeholders":         "AKCp" + strings.Repeat("x", 69) + " p8e-" + strings.Repeat("0", 32) + " sk-us",
		"values of prose":      "dropbox: internationals, travis = abcdefghijklmnopqrstuv and twitch: thirtycharactersofonelongword",
		"a mark":               "[redacted:anthropic-key:1a2b] [redacted:env-GITHUB_TOKEN]",
		"text that is not UTF": "\xff\xfe sk- \x80",
	} {
		require.True(t, text == r.Text(text), "%s: %v", name, r.Kinds(text))
	}
}

func TestSameSecretHasSameMark(t *testing.T) {
	r := redactor(t, Options{})
	one, other := "sk-ant-"+strings.Repeat("a1", 20), "sk-ant-"+strings.Repeat("b2", 20)
	a, b := r.Text(one), r.Text(other)
	require.Equal(t, "x "+a+" y "+a+" z "+b, r.Text("x "+one+" y "+one+" z "+other))
	require.NotEqual(t, a, b)
	elsewhere := redactor(t, Options{Key: func() ([]byte, error) { return []byte("another key"), nil }})
	require.NotEqual(t, a, elsewhere.Text(one), "secrets cannot be guessed without the key")
	keyless := redactor(t, Options{Key: func() ([]byte, error) { return nil, errors.New("the store is away") }})
	require.Equal(t, "x [redacted:anthropic-key]", keyless.Text("x "+one))
}

func TestEnvironmentValues(t *testing.T) {
	r := redactor(t, Options{
		Environ: []string{
			"DEPLOY_TOKEN=correct horse", "PIN_KEY=1234567", "HOME=/home/ada", "DB_PASSWORD=a\"b\nc/d&e",
			"EMPTY_KEY=",
			"GITHUB_TOKEN=correct horse battery",
		},
		Names: []string{"*_TOKEN", "*_KEY", "*PASSWORD"},
	})
	require.Equal(t, []string{"PIN_KEY"}, r.Short())
	got := r.Text("correct horse, 1234567, /home/ada")
	require.Regexp(t, `^\[redacted:env-DEPLOY_TOKEN:[0-9a-f]{4}\], 1234567, /home/ada$`, got)
	require.Equal(t, []string{"env-GITHUB_TOKEN"}, r.Kinds("correct horse battery"), "the longer one counts")
	require.Equal(t, []string{"env-DB_PASSWORD"}, r.Kinds("is a\"b\nc/d&e plain"))
	require.Equal(t, []string{"env-DB_PASSWORD"}, r.Kinds(`{"x":"a\"b\nc/d\u0026e"}`))
	require.Equal(t, []string{"env-DB_PASSWORD"}, r.Kinds("?p=a%22b%0Ac%2Fd%26e"))
}

func TestUserPatterns(t *testing.T) {
	r := redactor(t, Options{Patterns: []string{`badge (\d{4})`, `CASE-\d+`}})
	require.Regexp(t, `^badge \[redacted:pattern:[0-9a-f]{4}\] of \[redacted:pattern:[0-9a-f]{4}\]$`,
		r.Text("badge 1234 of CASE-77"))
	_, err := New(Options{Patterns: []string{"fine", "(", "["}})
	require.ErrorContains(t, err, `pattern "("`)
	require.ErrorContains(t, err, `pattern "["`)
}

func TestOverlappingSecretsAreMerged(t *testing.T) {
	key := "sk-ant-" + strings.Repeat("a1", 20)
	r := redactor(t, Options{
		Environ: []string{"THE_KEY=" + key + "/tail"}, Names: []string{"THE_KEY"},
		Patterns: []string{"before sk-ant-a1"},
	})
	require.Equal(t, "x [redacted:pattern:", r.Text("x before " + key + "/tail")[:len("x [redacted:pattern:")])
	require.NotContains(t, r.Text("x before "+key+"/tail"), "tail")
}

func TestWriter(t *testing.T) {
	r := redactor(t, Options{
		Environ: []string{"A_KEY=open-sesame"}, Names: []string{"A_KEY"},
		Key: func() ([]byte, error) { return nil, nil },
	})
	var b bytes.Buffer
	n, err := r.Writer(&b).Write([]byte("level=WARN msg=open-sesame\n"))
	require.NoError(t, err)
	require.Equal(t, 27, n, "what was given is what counts")
	require.Equal(t, "level=WARN msg=[redacted:env-A_KEY]\n", b.String())
}

func TestZeroOptions(t *testing.T) {
	var none *Redactor
	require.Equal(t, "sk-ant-"+strings.Repeat("a1", 20), none.Text("sk-ant-"+strings.Repeat("a1", 20)))
	require.Empty(t, none.Kinds("x"))
	require.Empty(t, none.Short())
}

func TestRedactionIsLinear(t *testing.T) {
	r := redactor(t, Options{})
	const size = 256 << 10 // a quadratic pattern would take minutes
	for _, unit := range []string{
		"sk-", "sk-ant-", "eyJ", "-eyJ", "eyJ.", "%20eyJaaaaaaaa", `\neyJaaaaaaaa`, "-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n-----END ", "://", "://a:", "SG.", "Authorization: Bearer ",
		"uthorization ", "earer ", "AKIA", "secret_key", " AIza", "[redacted:", "ghp_", "-----BEGIN ",
		"adafruit: ", "q~", "_mmk", "sc_a", "glpat-", "glrt-t0_", "jira",
	} {
		long := strings.Repeat(unit, size/len(unit))
		require.NotEmpty(t, r.Text(long), unit)
	}
	for _, f := range known().forms {
		for _, word := range f.words {
			require.NotEmpty(t, r.Text(strings.Repeat(word, size/32/len(word))))
		}
	}
	secret := "sk-ant-" + strings.Repeat("a1", 20)
	long := strings.Repeat("lorem ipsum ", size/12)
	require.NotContains(t, r.Text(long[:size/2]+secret+long[size/2:]), secret, "wherever a reader would cut it")
}

func FuzzText(f *testing.F) {
	for _, s := range secrets {
		f.Add(s.before + s.secret + s.after)
	}
	r, err := New(Options{
		Key: func() ([]byte, error) { return []byte("a key"), nil }, Environ: []string{"A_KEY=somewhat secret"},
		Names: []string{"*_KEY"},
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		require.NotContains(t, once, "somewhat secret")
		if len(r.Kinds(text)) == 0 {
			require.Equal(t, text, once)
		}
	})
}

func TestLearn(t *testing.T) {
	r := redactor(t, Options{Environ: []string{"A_TOKEN=open-sesame"}, Names: []string{"*_TOKEN"}})
	require.Equal(t, "another-one", r.Text("another-one"))
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() { r.Text("another-one, open-sesame") })
	}
	require.Equal(t, []string{"C_TOKEN"}, r.Learn([]string{"B_TOKEN=another-one", "C_TOKEN=short",
		"PATH=/usr/local/bin"}))
	r.Learn([]string{"B_TOKEN=another-one"})
	readers.Wait()
	require.Regexp(
		t, `^\[redacted:env-B_TOKEN:[0-9a-f]{4}\] and \[redacted:env-A_TOKEN:[0-9a-f]{4}\] in /usr/local/bin$`,
		r.Text("another-one and open-sesame in /usr/local/bin"),
	)
	require.Len(t, *r.values.Load(), 2, "known already")
	require.Empty(t, (*Redactor)(nil).Learn([]string{"B_TOKEN=another-one"}))
}

// TestEncodedValues finds a value inside of larger data in Base64 and hexadecimal, wherever it begins.
func TestEncodedValues(t *testing.T) {
	const secret = "correct horse battery"
	r := redactor(t, Options{Environ: []string{"API_KEY=" + secret}, Names: []string{"*_KEY"}})
	for _, before := range []string{"", "a", "ab", "abc", "user:"} {
		for _, after := range []string{"", "x", "xy"} {
			data := []byte(before + secret + after)
			for name, text := range map[string]string{
				"base64": base64.StdEncoding.EncodeToString(data), "base64 for URLs": base64.URLEncoding.EncodeToString(data),
				"without padding": base64.RawStdEncoding.EncodeToString(data), "hex": hex.EncodeToString(data),
				"capital hex": strings.ToUpper(hex.EncodeToString(data)),
			} {
				got := r.Text("it is " + text + ".")
				require.Regexp(t, `^it is .{0,12}\[redacted:env-API_KEY:[0-9a-f]{4}\].{0,7}\.$`, got, "%s of %q", name, data)
			}
		}
	}
}

func TestCanBe(t *testing.T) {
	for _, c := range []struct {
		redacted, text string
		want           bool
	}{
		{"do it", "do it", true},
		{"do it", "do it now", false},
		{"use [redacted:env-A_KEY:1a2b] (now)", "use secret\nkey (now)", true},
		{"use [redacted:env-A_KEY] (now)", "use  (now)", false},
		{"use [redacted:env-A_KEY:1a2b]", "do not use key", false},
		{"[redacted:jwt:1a2b] and [redacted:pattern:1a2b]", "a and b", true},
		{"[redacted:jwt:1a2b]", "[redacted:jwt:1a2b]", true},
	} {
		require.Equal(t, c.want, CanBe(c.redacted, c.text), "%q and %q", c.redacted, c.text)
	}
}

// TestValuesInOtherForms finds a value as programs write it: in JSON of different kinds, in HTML, in Base64 of Base64, and
// over several lines.
func TestValuesInOtherForms(t *testing.T) {
	const secret = `a/b"c&d<é😀> correct horse battery staple`
	r := redactor(t, Options{Environ: []string{"API_KEY=" + secret}, Names: []string{"*_KEY"}})
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	wrap := func(text, with string) string { return text[:30] + with + text[30:] }
	for name, text := range map[string]string{
		"slashes escaped":    `a\/b\"c&d<é😀> correct horse battery staple`,
		"ASCII":              `a/b\"c&d<\u00e9\ud83d\ude00> correct horse battery staple`,
		"ASCII and slashes":  `a\/b\"c&d<\u00e9\ud83d\ude00> correct horse battery staple`,
		"HTML":               `a/b&#34;c&amp;d&lt;é😀&gt; correct horse battery staple`,
		"HTML with names":    `a/b&quot;c&amp;d&lt;é😀&gt; correct horse battery staple`,
		"Base64 of Base64":   base64.StdEncoding.EncodeToString([]byte(encoded)),
		"Base64 on lines":    wrap(encoded, "\n"),
		"indented":           wrap(encoded, "\r\n    "),
		"lines in JSON":      wrap(encoded, `\n`),
		"the value on lines": wrap(secret, "\n"),
		"on three lines":     wrap(wrap(encoded, "\n"), "\n"),
	} {
		got := r.Text("it is " + text + ".\nNext line.")
		require.Regexp(t, `^it is .{0,12}\[redacted:env-API_KEY:[0-9a-f]{4}\].{0,7}\.\nNext line\.$`, got, name)
	}
	require.Equal(t, "a/b\nNext", r.Text("a/b\nNext"), "a part of it is no secret")
	require.Equal(t, `C:\\new`, r.Text(`C:\\new`))
}
