package redact

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

//go:generate go -C ../../tools run ./gitleaks

// form is the format of one kind of secret. A text is first searched for its words, which is fast.
type form struct {
	name      string
	words     []string              // each secret has one of them; in lower case with anyCase
	anyCase   bool                  // letters of a word may be capital
	setting   bool                  // the word is in the name of a setting, and the secret is its value
	back      int                   // the bytes before the word that belong to the secret
	re        lazyregexp.Regexp     // from there; the first group that matches is the secret, or the whole match
	wordStart bool                  // no letter or digit before it
	wordEnd   bool                  // nor after it
	digit     bool                  // the secret contains a digit, unlike prose
	entropy   float64               // of its bytes, in bits, at least
	end       func(rest string) int // instead of re: the end of the secret; 0: none
}

// forms are the known kinds of secrets beside those of gitleaks. They match nothing else: digests, ids, base64 images and
// prose stay unchanged.
var forms = []form{
	{name: "anthropic-key", words: []string{"sk-ant-"}, re: compileAt(`sk-ant-[A-Za-z0-9_-]{16,}`)},
	{
		name: "openai-key", words: []string{"sk-"},
		re:        compileAt(`sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|or-v1-[0-9a-f]{32,}|[A-Za-z0-9]{20,})`),
		wordStart: true,
	},
	{
		name: "aws-access-key", words: []string{"AKIA", "ASIA"}, re: compileAt(`A[KS]IA[A-Z0-9]{16}`),
		wordStart: true,
		wordEnd:   true,
	},
	{
		name: "aws-secret-key", words: []string{"ecret", "ECRET"},
		re: compileAt(`(?i)ecret_?(?:access_?)?key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9/+]{40})`), wordEnd: true,
	},
	{
		name: "github-token", words: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"},
		re: compileAt(`gh[pousr]_[A-Za-z0-9]{36,}`), wordStart: true,
	},
	{
		name: "github-token", words: []string{"github_pat_"}, re: compileAt(`github_pat_[A-Za-z0-9_]{22,}`),
		wordStart: true,
	},
	{
		name: "gitlab-token", words: []string{"glpat-", "gldt-", "glrt-", "glptt-", "glcbt-"},
		re: compileAt(`gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}`), wordStart: true,
	},
	{
		name: "slack-token", words: []string{"xox"}, re: compileAt(`xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}`),
		wordStart: true, digit: true,
	},
	{name: "slack-token", words: []string{"xapp-"}, re: compileAt(`xapp-[0-9]-[A-Za-z0-9-]{10,}`), wordStart: true},
	{
		name: "slack-webhook", words: []string{"hooks.slack.com/services/"},
		re: compileAt(`hooks\.slack\.com/services/([A-Za-z0-9/]{24,})`),
	},
	{
		name: "google-key", words: []string{"AIza"}, re: compileAt(`AIza[A-Za-z0-9_-]{35}`), wordStart: true,
		wordEnd: true,
	},
	{name: "google-token", words: []string{"ya29."}, re: compileAt(`ya29\.[A-Za-z0-9_-]{20,}`), wordStart: true},
	{name: "google-secret", words: []string{"GOCSPX-"}, re: compileAt(`GOCSPX-[A-Za-z0-9_-]{20,}`), wordStart: true},
	{
		name: "azure-key", words: []string{"AccountKey=", "SharedAccessKey="},
		re: compileAt(`(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})`),
	},
	{
		name: "stripe-key", words: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"},
		re: compileAt(`[rs]k_(?:live|test)_[A-Za-z0-9]{16,}`), wordStart: true,
	},
	{
		name: "stripe-secret", words: []string{"whsec_"}, re: compileAt(`whsec_[A-Za-z0-9+/]{24,}={0,2}`),
		wordStart: true,
	},
	{name: "npm-token", words: []string{"npm_"}, re: compileAt(`npm_[A-Za-z0-9]{36,}`), wordStart: true},
	{name: "pypi-token", words: []string{"pypi-AgE"}, re: compileAt(`pypi-AgE[A-Za-z0-9_-]{40,}`), wordStart: true},
	{name: "huggingface-token", words: []string{"hf_"}, re: compileAt(`hf_[A-Za-z0-9]{30,}`), wordStart: true},
	{
		name: "sendgrid-key", words: []string{"SG."}, re: compileAt(`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}`),
		wordStart: true,
	},
	{
		name: "vault-token", words: []string{"hvs.", "hvb.", "hvr."}, re: compileAt(`hv[sbr]\.[A-Za-z0-9_-]{24,}`),
		wordStart: true,
	},
	{
		name: "digitalocean-token", words: []string{"dop_v1_", "doo_v1_", "dor_v1_"},
		re: compileAt(`do[opr]_v1_[0-9a-f]{64}`), wordStart: true,
	},
	{
		name: "discord-webhook", words: []string{"discord.com/api/", "discordapp.com/api/"},
		re: compileAt(`discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{15,22}/([A-Za-z0-9_-]{40,})`),
	},
	{
		name: "discord-token", words: []string{"M", "N", "O"},
		re:        compileAt(`[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}`),
		wordStart: true, wordEnd: true, digit: true,
	},
	{
		name: "twilio-key", words: []string{"SK"}, re: compileAt(`SK[0-9a-f]{32}`), wordStart: true, wordEnd: true,
	},
	{
		name: "twilio-token", words: []string{"wilio", "WILIO"},
		re: compileAt(`(?i)wilio_?auth_?token["'\\]*\s*[:=]\s*["'\\]*([0-9a-f]{32})`), wordEnd: true,
	},
	{
		name: "jwt", words: []string{"eyJ"},
		re: compileAt(`eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}\.[A-Za-z0-9_-]{8,}`), wordStart: true,
	},
	{name: "passbook-token", words: []string{"pbk_"}, re: compileAt(`pbk_[A-Za-z0-9_-]{20,}`), wordStart: true},
	{
		name: "passbook-login", words: []string{"/login?"}, // links of the console and of the Web UI
		re: compileAt(`/login\?(?:next=[^&\s"'\\]{0,512}(?:&|\\u0026))?(?:key|token)=([A-Z2-7]{26})`), wordEnd: true,
	},
	{name: "google-refresh-token", words: []string{"1//0"}, re: compileAt(`1//0[A-Za-z0-9_-]{40,}`), wordStart: true},
	{name: "azure-signature", words: []string{"sig="}, re: compileAt(`sig=([A-Za-z0-9%+/]{40,}={0,2})`), wordStart: true},
	{name: "telegram-token", words: []string{":AA"}, re: compileAt(`:(AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|\z)`)},
	{
		name: "linear-key", words: []string{"lin_api_", "lin_oauth_"}, re: compileAt(`lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
		wordStart: true,
	},
	{name: "fly-token", words: []string{"fo1_"}, re: compileAt(`fo1_[A-Za-z0-9_-]{40,}`), wordStart: true},
	{
		name: "fly-token", words: []string{"fm1a_", "fm1r_", "fm2_"}, re: compileAt(`fm(?:1[ar]|2)_[A-Za-z0-9+/]{60,}={0,3}`),
		wordStart: true,
	},
	{
		name: "doppler-token", words: []string{"dp."},
		re: compileAt(`dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}`), wordStart: true,
	},
	{name: "docker-token", words: []string{"dckr_"}, re: compileAt(`dckr_[po]at_[A-Za-z0-9_-]{27,}`), wordStart: true},
	{
		name: "docker-login", words: []string{`auth"`, `auth\"`},
		re: compileAt(`auth\\*"\s*:\s*\\*"([A-Za-z0-9+/]{12,}={0,2})`),
	},
	{
		name: "databricks-token", words: []string{"dapi"}, re: compileAt(`dapi[0-9a-f]{32}(?:-[0-9])?`), wordStart: true,
		wordEnd: true,
	},
	{
		name: "cookie", words: []string{"ookie", "OOKIE"},
		re: compileAt(`(?i)ookie["'\\]*\s*:\s*["'\\]*([^\s=;"'\\]{1,64}=[^\s;"'\\]{8,}` +
			`(?:;[ \t]*[^\s=;"'\\]{1,64}=[^\s;"'\\]*)*)`),
	},
	{
		name: "netrc-password", words: []string{"machine "},
		re:        compileAt(`machine\s+\S{1,256}\s+login\s+\S{1,256}\s+password\s+([^\s"'\\]{1,256})`),
		wordStart: true,
	},
	{
		name: "kubernetes-key", words: []string{"client-key-data"},
		re: compileAt(`client-key-data["'\\]*\s*:\s*["'\\]*([A-Za-z0-9+/]{40,}={0,2})`),
	},
	{name: "private-key", words: []string{"-----BEGIN "}, end: keyEnd},
	{
		name: "authorization", words: []string{"uthorization", "UTHORIZATION"},
		re: compileAt(
			`(?i)uthorization["'\\]*\s*[:=]\s*["'\\]*(?:bearer|basic|token|apikey|negotiate)\s+([A-Z0-9._~+/=-]{8,})`,
		),
	},
	{
		name: "bearer-token", words: []string{"earer ", "EARER "},
		re:    compileAt(`(?i)earer\s+([A-Z0-9._~+/=-]{20,})`),
		digit: true,
	},
	{
		name: "api-key-header", words: []string{"-api-key", "-Api-Key", "-API-Key", "-API-KEY"},
		re: compileAt(`(?i)-api-key["'\\]*\s*[:=]\s*["'\\]*([A-Z0-9._~+/=-]{12,})`),
	},
	{name: "url-password", words: []string{"://"},
		re: compileAt(`://[^\s/:@"'<>\\]{0,128}:([^\s/@"'<>\\]{1,256})@`)},
}

// compileAt compiles an expression that matches at the position of its word.
func compileAt(expr string) lazyregexp.Regexp { return lazyregexp.New(`\A(?:` + expr + `)`) }

// known are all forms, by the first two bytes of their words in lower case.
var known = sync.OnceValue(func() *index {
	x := &index{forms: slices.Concat(forms, gitleaks()), buckets: make([]uint16, 1<<16), entries: [][]entry{nil}}
	for f, form := range x.forms {
		for _, word := range form.words {
			for second := range 1 << 8 {
				if len(word) > 1 && byte(second) != lower(word[1]) {
					continue
				}
				at := &x.buckets[int(lower(word[0]))<<8|second]
				if *at == 0 {
					*at = uint16(len(x.entries))
					x.entries = append(x.entries, nil)
				}
				x.entries[*at] = append(x.entries[*at], entry{word, f})
			}
		}
	}
	return x
})

// index finds the words of all forms in one pass over a text.
type index struct {
	forms   []form
	buckets []uint16 // by two bytes: a place in entries; 0: no word begins so
	entries [][]entry
}

type entry struct {
	word string
	form int
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// find runs in linear time: text that was matched or rejected is not searched again.
func (x *index) find(text string) (out []span) {
	searched := make([]int, len(x.forms))
	for i := 0; i+1 < len(text); i++ {
		bucket := x.buckets[int(lower(text[i]))<<8|int(lower(text[i+1]))]
		if bucket == 0 {
			continue
		}
		for _, e := range x.entries[bucket] {
			f := &x.forms[e.form]
			if i-f.back < searched[e.form] || !f.has(text[i:], e.word) {
				continue
			}
			searched[e.form] = i - f.back + len(e.word)
			start, end, ok := f.match(text, i-f.back, i+len(e.word))
			if ok {
				out = append(out, span{start, end, f.name})
			}
			searched[e.form] = max(searched[e.form], end)
		}
	}
	return out
}

// has reports whether a text begins with a word.
func (f *form) has(text, word string) bool {
	if !f.anyCase {
		return strings.HasPrefix(text, word)
	}
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if lower(text[i]) != word[i] {
			return false
		}
	}
	return true
}

// match returns the position of the secret that begins at i and whose word ends at after. If the text there has only the
// format of one, ok is false, and end is that of the text.
func (f *form) match(text string, i, after int) (start, end int, ok bool) {
	if f.wordStart && inWord(text, i) {
		return 0, 0, false
	}
	if f.setting {
		n := valueOffset(text[after:])
		if n == 0 {
			return 0, 0, false
		}
		i = after + n
	}
	rest := text[i:]
	if f.end != nil {
		if n := f.end(rest); n > 0 {
			return i, i + n, true
		}
		return 0, 0, false
	}
	m := f.re.FindStringSubmatchIndex(rest)
	if m == nil {
		return 0, 0, false
	}
	start, end = i+m[0], i+m[1]
	for k := 2; k < len(m); k += 2 {
		if m[k] >= 0 {
			start, end = i+m[k], i+m[k+1]
			break
		}
	}
	if f.wordEnd && end < len(text) && (isWordChar(text[end]) || strings.IndexByte("+/", text[end]) >= 0) {
		return start, end, false
	}
	secret := text[start:end]
	return start, end, (!f.digit || strings.ContainsAny(secret, "0123456789")) && (f.entropy == 0 || entropy(secret) >= f.entropy)
}

// valueOffset returns where the value of a setting begins, behind a part of its name: _key: "abc, _KEY=abc, Key\": \"abc,
// _key' => 'abc; 0: nowhere. The limits are those of gitleaks. Quotes may have backslashes, and > may be a code of JSON.
func valueOffset(text string) int {
	const arrow = "u003e"
	i := skip(text, 0, 20, " \t_.-", true)
	i = skip(text, i, 8, "\t\n\v\f\r \"'\\", false)
	for _, operator := range []string{":::=", "::=", ":=", "=>", "?=", "||", "=", ":", ">", arrow, ","} {
		if !strings.HasPrefix(text[i:], operator) {
			continue
		}
		i += len(operator)
		if k := skip(text, i, 4, `\`, false); strings.HasPrefix(text[k:], arrow) {
			i = k + len(arrow)
		}
		return skip(text, i, 10, "\t\n\v\f\r `\"'=\\", false)
	}
	return 0
}

// skip returns the end of at most n of some characters, or of letters and digits too.
func skip(text string, i, n int, chars string, word bool) int {
	for end := min(len(text), i+n); i < end; i++ {
		letter := word && isWordChar(text[i])
		if !letter && strings.IndexByte(chars, text[i]) < 0 {
			break
		}
	}
	return i
}

// entropy returns the bits per byte of a text.
func entropy(text string) (bits float64) {
	var count [1 << 8]int
	for i := range len(text) {
		count[text[i]]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
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
