package redact

import (
	"regexp"
	"strings"
)

// form is how secrets of one kind look. A text is searched for its words, which is quick, and only there the rest is looked at.
type form struct {
	name  string
	words []string              // one of them begins the form
	re    *regexp.Regexp        // from there on; the first group is the secret, or the whole match
	alone bool                  // no letter or digit stands before it
	whole bool                  // nor behind it
	digit bool                  // the secret has a digit: words of a language have none
	ends  func(rest string) int // instead of re: where the secret ends; 0: it is none
}

// forms are the kinds of secrets that are known without being told. Only forms that nothing else has are here: digests, ids, pictures in base64
// and prose pass.
var forms = []form{
	{name: "anthropic-key", words: []string{"sk-ant-"}, re: at(`sk-ant-[A-Za-z0-9_-]{16,}`)},
	{name: "openai-key", words: []string{"sk-"}, re: at(`sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|or-v1-[0-9a-f]{32,}|[A-Za-z0-9]{20,})`), alone: true},
	{name: "aws-access-key", words: []string{"AKIA", "ASIA"}, re: at(`A[KS]IA[A-Z0-9]{16}`), alone: true, whole: true},
	{name: "aws-secret-key", words: []string{"ecret", "ECRET"}, re: at(`(?i)ecret_?(?:access_?)?key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9/+]{40})`), whole: true},
	{name: "github-token", words: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, re: at(`gh[pousr]_[A-Za-z0-9]{36,}`), alone: true},
	{name: "github-token", words: []string{"github_pat_"}, re: at(`github_pat_[A-Za-z0-9_]{22,}`), alone: true},
	{name: "gitlab-token", words: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"}, re: at(`gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}`), alone: true},
	{name: "slack-token", words: []string{"xox"}, re: at(`xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}`), alone: true, digit: true},
	{name: "slack-token", words: []string{"xapp-"}, re: at(`xapp-[0-9]-[A-Za-z0-9-]{10,}`), alone: true},
	{name: "slack-webhook", words: []string{"hooks.slack.com/services/"}, re: at(`hooks\.slack\.com/services/([A-Za-z0-9/]{24,})`)},
	{name: "google-key", words: []string{"AIza"}, re: at(`AIza[A-Za-z0-9_-]{35}`), alone: true, whole: true},
	{name: "google-token", words: []string{"ya29."}, re: at(`ya29\.[A-Za-z0-9_-]{20,}`), alone: true},
	{name: "google-secret", words: []string{"GOCSPX-"}, re: at(`GOCSPX-[A-Za-z0-9_-]{20,}`), alone: true},
	{name: "azure-key", words: []string{"AccountKey=", "SharedAccessKey="}, re: at(`(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})`)},
	{name: "stripe-key", words: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"}, re: at(`[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`), alone: true},
	{name: "stripe-secret", words: []string{"whsec_"}, re: at(`whsec_[A-Za-z0-9+/]{24,}={0,2}`), alone: true},
	{name: "npm-token", words: []string{"npm_"}, re: at(`npm_[A-Za-z0-9]{36,}`), alone: true},
	{name: "pypi-token", words: []string{"pypi-AgE"}, re: at(`pypi-AgE[A-Za-z0-9_-]{40,}`), alone: true},
	{name: "huggingface-token", words: []string{"hf_"}, re: at(`hf_[A-Za-z0-9]{30,}`), alone: true},
	{name: "sendgrid-key", words: []string{"SG."}, re: at(`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`), alone: true},
	{name: "jwt", words: []string{"eyJ"}, re: at(`eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]{8,}`), alone: true},
	{name: "private-key", words: []string{"-----BEGIN "}, ends: endOfKey},
	{
		name: "authorization", words: []string{"uthorization", "UTHORIZATION"},
		re: at(`(?i)uthorization["'\\]*\s*[:=]\s*["'\\]*(?:bearer|basic|token|apikey|negotiate)\s+([A-Z0-9._~+/=-]{8,})`),
	},
	{name: "bearer-token", words: []string{"earer ", "EARER "}, re: at(`(?i)earer\s+([A-Z0-9._~+/=-]{20,})`), digit: true},
	{name: "api-key-header", words: []string{"-api-key", "-Api-Key", "-API-Key", "-API-KEY"}, re: at(`(?i)-api-key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9._~+/=-]{12,})`)},
	{name: "url-password", words: []string{"://"}, re: at(`://[^\s/:@"'<>\\]{0,128}:([^\s/@"'<>\\]{1,256})@`)},
}

// at compiles an expression for the place where its word was found.
func at(expr string) *regexp.Regexp { return regexp.MustCompile(`\A(?:` + expr + `)`) }

// find goes from one word to the next. What was taken or refused is not looked at again, so no text costs more than its length.
func (f form) find(text string) []span {
	var out []span
	for _, word := range f.words {
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

// match says where the secret is that begins with a word at i; an end of 0: there is none.
func (f form) match(text string, i int) (start, end int) {
	if f.alone && inWord(text, i) {
		return 0, 0
	}
	rest := text[i:]
	if f.ends != nil {
		if n := f.ends(rest); n > 0 {
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
	if f.whole && end < len(text) && (wordy(text[end]) || strings.IndexByte("+/", text[end]) >= 0) {
		return 0, 0
	}
	if f.digit && !strings.ContainsAny(text[start:end], "0123456789") {
		return 0, 0
	}
	return start, end
}

// inWord says that a word goes on at i. The end of an escape is no word: in \nsk-… and %3Dsk-… the key stands alone.
func inWord(text string, i int) bool {
	if i == 0 || !wordy(text[i-1]) {
		return false
	}
	before := text[max(0, i-6):i]
	return !escape.MatchString(before)
}

var escape = regexp.MustCompile(`(?:\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})\z`)

func wordy(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

var keyHead = at(`-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----`)

// endOfKey finds the end of a private key in PEM, also of one that was cut off and of one in a JSON string.
func endOfKey(rest string) int {
	const tail, dashes = "-----END ", "-----"
	head := keyHead.FindStringIndex(rest)
	if head == nil {
		return 0
	}
	i := head[1]
	for ; i < len(rest) && (wordy(rest[i]) || strings.IndexByte("+/=\\ \t\r\n:,.", rest[i]) >= 0); i++ {
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
