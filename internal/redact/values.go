package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf16"
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

// encodings returns the secret as plain text, in a JSON string, in a URL, in HTML, in hexadecimal, in Base64, and in
// Base64 of Base64.
func encodings(secret string) []encoded {
	texts := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(secret)}
	texts = append(texts, jsonTexts(secret)...)
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
	for offset := range 3 {
		out = append(out, base64At(base64.RawStdEncoding, base64.StdEncoding.EncodeToString([]byte(secret)), offset))
	}
	slices.SortFunc(out, func(a, b encoded) int { return cmp.Compare(a.text, b.text) })
	return slices.CompactFunc(out, func(a, b encoded) bool { return a.text == b.text })
}

// jsonTexts returns the secret as different programs write it in a JSON string.
func jsonTexts(secret string) []string {
	var plain, ascii strings.Builder
	out := json.NewEncoder(&plain)
	out.SetEscapeHTML(false)
	raw, err := json.Marshal(secret)
	if err != nil || out.Encode(secret) != nil {
		return nil
	}
	text := strings.TrimSuffix(plain.String(), "\n")
	text = text[1 : len(text)-1]
	for _, c := range text {
		switch {
		case c < 0x80:
			ascii.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&ascii, `\u%04x`, c)
		default:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&ascii, `\u%04x\u%04x`, high, low)
		}
	}
	slashes := strings.NewReplacer("/", `\/`)
	return []string{string(raw[1 : len(raw)-1]), text, ascii.String(), slashes.Replace(text), slashes.Replace(ascii.String())}
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

// lines is a text without its line breaks, in which a value is found that was wrapped.
type lines struct {
	text string
	cut  []cut // the breaks, in order
}

// cut is a break that was left out: at is its place in the remaining text, and length the sum of all until there.
type cut struct{ at, length int }

// unwrap removes the line breaks of a text, also those of a JSON string, with the indentation after them.
func unwrap(text string) lines {
	var u lines
	var b strings.Builder
	kept, left := 0, 0
	for i := 0; i < len(text); {
		next := strings.IndexAny(text[i:], "\r\n\\")
		if next < 0 {
			break
		}
		i += next
		n := breakLength(text[i:])
		if n == 0 {
			i++
			if text[i-1] == '\\' && i < len(text) { // what it escapes
				i++
			}
			continue
		}
		b.WriteString(text[kept:i])
		i += n
		kept, left = i, left+n
		u.cut = append(u.cut, cut{b.Len(), left})
	}
	if len(u.cut) > 0 {
		b.WriteString(text[kept:])
		u.text = b.String()
	}
	return u
}

// breakLength returns the length of the line break that a text begins with, and of the indentation after it; 0: none.
func breakLength(text string) int {
	for _, ends := range []string{"\r\n", "\n", `\r\n`, `\n`} {
		if rest, ok := strings.CutPrefix(text, ends); ok {
			return len(text) - len(strings.TrimLeft(rest, " \t"))
		}
	}
	return 0
}

// place returns a place of the whole text. What ends at a break ends before it.
func (u lines) place(at int, end bool) int {
	i, here := slices.BinarySearchFunc(u.cut, at, func(c cut, at int) int { return c.at - at })
	if here && !end {
		for i < len(u.cut) && u.cut[i].at == at {
			i++
		}
	}
	if i == 0 {
		return at
	}
	return at + u.cut[i-1].length
}

// wrapped finds the values that line breaks separate. Short ones could come together by chance.
func (v value) wrapped(u lines) (out []span) {
	const enough = 16
	for _, s := range v.find(u.text) {
		if s.end-s.start >= enough {
			out = append(out, span{u.place(s.start, false), u.place(s.end, true), s.name})
		}
	}
	return out
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
