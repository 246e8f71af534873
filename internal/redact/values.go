package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// minValueLength is the minimum length in bytes of a value to search for: shorter ones occur everywhere.
const minValueLength = 8

// value is a known secret.
type value struct {
	name  string // env-GITHUB_TOKEN
	forms []encoded
}

// encoded is one encoding of a secret.
type encoded struct {
	text          string
	before, after int // characters beside the text that contain bits of the secret too
}

// valuesOf returns the values of the variables with those names, and the names of those that are too short.
func valuesOf(environ, names []string) (all []value, short []string) {
	for _, pair := range environ {
		name, secret, _ := strings.Cut(pair, "=")
		if secret == "" || !slices.ContainsFunc(names, func(glob string) bool { return matchesName(glob, name) }) {
			continue
		}
		if len(strings.TrimSpace(secret)) < minValueLength {
			short = append(short, name)
			continue
		}
		all = append(all, value{name: "env-" + name, forms: encodings(strings.TrimSpace(secret))})
	}
	return all, short
}

func (v value) same(other value) bool {
	return v.name == other.name && slices.Equal(v.forms, other.forms)
}

func matchesName(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// encodings returns the secret as plain text, in a JSON string, in a URL, in hexadecimal, and in Base64.
func encodings(secret string) []encoded {
	texts := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	if raw, err := json.Marshal(secret); err == nil {
		texts = append(texts, string(raw[1:len(raw)-1]))
	}
	digits := hex.EncodeToString([]byte(secret))
	texts = append(texts, digits, strings.ToUpper(digits))
	var out []encoded
	for _, text := range texts {
		out = append(out, encoded{text: text})
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			out = append(out, base64At(alphabet, secret, offset))
		}
	}
	slices.SortFunc(out, func(a, b encoded) int { return cmp.Compare(a.text, b.text) })
	return slices.CompactFunc(out, func(a, b encoded) bool { return a.text == b.text })
}

// keyForms returns the texts of a binary key.
func keyForms(key []byte) []encoded {
	digits := hex.EncodeToString(key)
	return []encoded{
		{text: digits}, {text: strings.ToUpper(digits)},
		base64At(base64.RawStdEncoding, string(key), 0), base64At(base64.RawURLEncoding, string(key), 0),
	}
}

// base64At returns the Base64 of a secret that begins at an offset in a group of three bytes. Only the characters
// without bits of the neighboring bytes are known.
func base64At(alphabet *base64.Encoding, secret string, offset int) encoded {
	const bitsOfByte, bitsOfChar = 8, 6
	all := alphabet.EncodeToString(append(make([]byte, offset), secret...))
	first, last := bitsOfByte*offset, bitsOfByte*(offset+len(secret)) // bits of the secret
	from, to := (first+bitsOfChar-1)/bitsOfChar, last/bitsOfChar
	return encoded{text: all[from:to], before: min(1, first%bitsOfChar), after: min(1, last%bitsOfChar)}
}

func (v value) find(text string) []span {
	var out []span
	for _, form := range v.forms {
		for at := 0; ; {
			i := strings.Index(text[at:], form.text)
			if i < 0 {
				break
			}
			start, end := at+i, at+i+len(form.text)
			out = append(out, span{max(0, start-form.before), min(len(text), end+form.after), v.name})
			at = end
		}
	}
	return out
}
