package redact

import (
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// form is the format of one kind of secret. A text is first searched for its words, which is fast.
type form struct {
	name      string
	prefixes  []string              // prefixes of the form
	re        lazyregexp.Regexp     // from there; the first group is the secret, or the whole match
	wordStart bool                  // no letter or digit before it
	wordEnd   bool                  // nor after it
	digit     bool                  // the secret contains a digit, unlike prose
	end       func(rest string) int // instead of re: the end of the secret; 0: none
}

// forms are the known kinds of secrets. They match nothing else: digests, ids, base64 images and prose stay
// unchanged.
var forms = []form{
	{name: "anthropic-key", prefixes: []string{"sk-ant-"}, re: compileAt(`sk-ant-[A-Za-z0-9_-]{16,}`)},
	{
		name: "openai-key", prefixes: []string{"sk-"},
		re:        compileAt(`sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|or-v1-[0-9a-f]{32,}|[A-Za-z0-9]{20,})`),
		wordStart: true,
	},
	{
		name: "aws-access-key", prefixes: []string{"AKIA", "ASIA"}, re: compileAt(`A[KS]IA[A-Z0-9]{16}`),
		wordStart: true,
		wordEnd:   true,
	},
	{
		name: "aws-secret-key", prefixes: []string{"ecret", "ECRET"},
		re: compileAt(`(?i)ecret_?(?:access_?)?key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9/+]{40})`), wordEnd: true,
	},
	{
		name: "github-token", prefixes: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"},
		re: compileAt(`gh[pousr]_[A-Za-z0-9]{36,}`), wordStart: true,
	},
	{
		name: "github-token", prefixes: []string{"github_pat_"}, re: compileAt(`github_pat_[A-Za-z0-9_]{22,}`),
		wordStart: true,
	},
	{
		name: "gitlab-token", prefixes: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"},
		re: compileAt(`gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}`), wordStart: true,
	},
	{
		name: "slack-token", prefixes: []string{"xox"}, re: compileAt(`xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}`),
		wordStart: true, digit: true,
	},
	{name: "slack-token", prefixes: []string{"xapp-"}, re: compileAt(`xapp-[0-9]-[A-Za-z0-9-]{10,}`), wordStart: true},
	{
		name: "slack-webhook", prefixes: []string{"hooks.slack.com/services/"},
		re: compileAt(`hooks\.slack\.com/services/([A-Za-z0-9/]{24,})`),
	},
	{
		name: "google-key", prefixes: []string{"AIza"}, re: compileAt(`AIza[A-Za-z0-9_-]{35}`), wordStart: true,
		wordEnd: true,
	},
	{name: "google-token", prefixes: []string{"ya29."}, re: compileAt(`ya29\.[A-Za-z0-9_-]{20,}`), wordStart: true},
	{name: "google-secret", prefixes: []string{"GOCSPX-"}, re: compileAt(`GOCSPX-[A-Za-z0-9_-]{20,}`), wordStart: true},
	{
		name: "azure-key", prefixes: []string{"AccountKey=", "SharedAccessKey="},
		re: compileAt(`(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})`),
	},
	{
		name: "stripe-key", prefixes: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"},
		re: compileAt(`[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`), wordStart: true,
	},
	{
		name: "stripe-secret", prefixes: []string{"whsec_"}, re: compileAt(`whsec_[A-Za-z0-9+/]{24,}={0,2}`),
		wordStart: true,
	},
	{name: "npm-token", prefixes: []string{"npm_"}, re: compileAt(`npm_[A-Za-z0-9]{36,}`), wordStart: true},
	{name: "pypi-token", prefixes: []string{"pypi-AgE"}, re: compileAt(`pypi-AgE[A-Za-z0-9_-]{40,}`), wordStart: true},
	{name: "huggingface-token", prefixes: []string{"hf_"}, re: compileAt(`hf_[A-Za-z0-9]{30,}`), wordStart: true},
	{
		name: "sendgrid-key", prefixes: []string{"SG."}, re: compileAt(`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`),
		wordStart: true,
	},
	{
		name: "vault-token", prefixes: []string{"hvs.", "hvb.", "hvr."}, re: compileAt(`hv[sbr]\.[A-Za-z0-9_-]{24,}`),
		wordStart: true,
	},
	{
		name: "digitalocean-token", prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_"},
		re: compileAt(`do[opr]_v1_[0-9a-f]{64}`), wordStart: true,
	},
	{
		name: "discord-webhook", prefixes: []string{"discord.com/api/", "discordapp.com/api/"},
		re: compileAt(`discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{15,22}/([A-Za-z0-9_-]{40,})`),
	},
	{
		name: "discord-token", prefixes: []string{"M", "N", "O"},
		re:        compileAt(`[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}`),
		wordStart: true, wordEnd: true, digit: true,
	},
	{
		name: "twilio-key", prefixes: []string{"SK"}, re: compileAt(`SK[0-9a-f]{32}`), wordStart: true, wordEnd: true,
	},
	{
		name: "twilio-token", prefixes: []string{"wilio", "WILIO"},
		re: compileAt(`(?i)wilio_?auth_?token["'\\]*\s*[:=]\s*["'\\]*([0-9a-f]{32})`), wordEnd: true,
	},
	{
		name: "jwt", prefixes: []string{"eyJ"},
		re: compileAt(`eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]{8,}`), wordStart: true,
	},
	{name: "passbook-token", prefixes: []string{"pbk_"}, re: compileAt(`pbk_[A-Za-z0-9_-]{20,}`), wordStart: true},
	{name: "google-refresh-token", prefixes: []string{"1//0"}, re: compileAt(`1//0[A-Za-z0-9_-]{40,}`), wordStart: true},
	{name: "azure-signature", prefixes: []string{"sig="}, re: compileAt(`sig=([A-Za-z0-9%+/]{40,}={0,2})`), wordStart: true},
	{name: "telegram-token", prefixes: []string{":AA"}, re: compileAt(`:(AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|\z)`)},
	{
		name: "linear-key", prefixes: []string{"lin_api_", "lin_oauth_"}, re: compileAt(`lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
		wordStart: true,
	},
	{name: "fly-token", prefixes: []string{"fo1_"}, re: compileAt(`fo1_[A-Za-z0-9_-]{40,}`), wordStart: true},
	{
		name: "fly-token", prefixes: []string{"fm1a_", "fm1r_", "fm2_"}, re: compileAt(`fm(?:1[ar]|2)_[A-Za-z0-9+/]{60,}={0,3}`),
		wordStart: true,
	},
	{
		name: "doppler-token", prefixes: []string{"dp."},
		re: compileAt(`dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`), wordStart: true,
	},
	{name: "docker-token", prefixes: []string{"dckr_"}, re: compileAt(`dckr_[po]at_[A-Za-z0-9_-]{27,}`), wordStart: true},
	{
		name: "docker-login", prefixes: []string{`auth"`, `auth\"`},
		re: compileAt(`auth\\*"\s*:\s*\\*"([A-Za-z0-9+/]{12,}={0,2})`),
	},
	{
		name: "databricks-token", prefixes: []string{"dapi"}, re: compileAt(`dapi[0-9a-f]{32}(?:-[0-9])?`), wordStart: true,
		wordEnd: true,
	},
	{
		name: "cookie", prefixes: []string{"ookie", "OOKIE"},
		re: compileAt(`(?i)ookie["'\\]*\s*:\s*["'\\]*([^\s=;"'\\]{1,64}=[^\s;"'\\]{8,}` +
			`(?:;[ \t]*[^\s=;"'\\]{1,64}=[^\s;"'\\]*)*)`),
	},
	{
		name: "netrc-password", prefixes: []string{"machine "},
		re:        compileAt(`machine\s+\S{1,256}\s+login\s+\S{1,256}\s+password\s+([^\s"'\\]{1,256})`),
		wordStart: true,
	},
	{
		name: "kubernetes-key", prefixes: []string{"client-key-data"},
		re: compileAt(`client-key-data["'\\]*\s*:\s*["'\\]*([A-Za-z0-9+/]{40,}={0,2})`),
	},
	{name: "private-key", prefixes: []string{"-----BEGIN "}, end: keyEnd},
	{
		name: "authorization", prefixes: []string{"uthorization", "UTHORIZATION"},
		re: compileAt(
			`(?i)uthorization["'\\]*\s*[:=]\s*["'\\]*(?:bearer|basic|token|apikey|negotiate)\s+([A-Z0-9._~+/=-]{8,})`,
		),
	},
	{
		name: "bearer-token", prefixes: []string{"earer ", "EARER "},
		re:    compileAt(`(?i)earer\s+([A-Z0-9._~+/=-]{20,})`),
		digit: true,
	},
	{
		name: "api-key-header", prefixes: []string{"-api-key", "-Api-Key", "-API-Key", "-API-KEY"},
		re: compileAt(`(?i)-api-key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9._~+/=-]{12,})`),
	},
	{name: "url-password", prefixes: []string{"://"},
		re: compileAt(`://[^\s/:@"'<>\\]{0,128}:([^\s/@"'<>\\]{1,256})@`)},
}

// compileAt compiles an expression that matches at the position of its word.
func compileAt(expr string) lazyregexp.Regexp { return lazyregexp.New(`\A(?:` + expr + `)`) }

// find runs in linear time: text that was matched or rejected is not searched again.
func (f form) find(text string) []span {
	var out []span
	for _, word := range f.prefixes {
		for from := 0; ; {
			i := strings.Index(text[from:], word)
			if i < 0 {
				break
			}
			i += from
			start, end := f.match(text, i)
			if end == 0 {
				from = i + len(word)
				continue
			}
			out = append(out, span{start, end, f.name})
			from = end
		}
	}
	return out
}

// match returns the position of the secret that begins with a word at i; end 0: none.
func (f form) match(text string, i int) (start, end int) {
	if f.wordStart && inWord(text, i) {
		return 0, 0
	}
	rest := text[i:]
	if f.end != nil {
		if n := f.end(rest); n > 0 {
			return i, i + n
		}
		return 0, 0
	}
	m := f.re.FindStringSubmatchIndex(rest)
	if m == nil {
		return 0, 0
	}
	start, end = i+m[0], i+m[1]
	if len(m) > 2 {
		start, end = i+m[2], i+m[3]
	}
	if f.wordEnd && end < len(text) && (isWordChar(text[end]) || strings.IndexByte("+/", text[end]) >= 0) {
		return 0, 0
	}
	if f.digit && !strings.ContainsAny(text[start:end], "0123456789") {
		return 0, 0
	}
	return start, end
}

// inWord reports whether i is inside a word. The end of an escape is not a word: in
// sk-… and %3Dsk-… the key stands alone.
func inWord(text string, i int) bool {
	if i == 0 || !isWordChar(text[i-1]) {
		return false
	}
	before := text[max(0, i-6):i]
	return !escape.MatchString(before)
}

var escape = lazyregexp.New(`(?:\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})\z`)

func isWordChar(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var keyBegin = compileAt(`-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----`)

// keyEnd returns the end of a private key in PEM, even of a truncated one or one in a JSON string.
func keyEnd(rest string) int {
	const tail, dashes = "-----END ", "-----"
	head := keyBegin.FindStringIndex(rest)
	if head == nil {
		return 0
	}
	i := head[1]
	for ; i < len(rest) && (isWordChar(rest[i]) || strings.IndexByte("+/=\\ \t\r\n:,.", rest[i]) >= 0); i++ {
		if !strings.HasPrefix(rest[i:], tail) {
			continue
		}
		i += len(tail)
		line := rest[i:min(len(rest), i+100)]
		if n := strings.Index(line, dashes); n >= 0 {
			return i + n + len(dashes)
		}
		return i
	}
	return i
}
