// Package redact redacts secrets in text: keys in known formats, the values of chosen environment variables, and
// matches of the user's patterns.
//
// A secret is replaced by a mark such as [redacted:anthropic-key:1a2b]. Its last part is a keyed digest: the same
// secret has the same mark wherever the same key is used, and the mark does not reveal the secret. Text without
// secrets is unchanged, and a mark is never redacted again. It runs in linear time.
//
// It knows formats only: a plain-text password is redacted only if a variable or a pattern matches it.
package redact

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Options define secrets in addition to the known formats.
type Options struct {
	Environ  []string               // NAME=value, as from os.Environ
	Names    []string               // of variables whose values are secrets; * matches any characters
	Patterns []string               // RE2; the first group is the secret, or the whole match
	Key      func() ([]byte, error) // for the digests of marks; without a key they have none
}

// Redactor redacts secrets. It is safe for concurrent use. A nil Redactor redacts nothing.
type Redactor struct {
	mu       sync.Mutex // for Learn
	values   atomic.Pointer[[]value]
	names    []string
	patterns []*regexp.Regexp
	short    []string
	key      func() ([]byte, error)
}

// New compiles the patterns. The error lists all invalid ones.
func New(o Options) (*Redactor, error) {
	r := &Redactor{key: o.Key, names: o.Names}
	var errs []error
	for _, p := range o.Patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("pattern %q: %w", p, err))
			continue
		}
		r.patterns = append(r.patterns, re)
	}
	var values []value
	values, r.short = valuesOf(o.Environ, o.Names)
	r.values.Store(&values)
	return r, errors.Join(errs...)
}

// Learn adds the secrets of another environment. It returns the chosen variables whose values are too short.
func (r *Redactor) Learn(environ []string) (short []string) {
	if r == nil {
		return nil
	}
	fresh, short := valuesOf(environ, r.names)
	r.add(fresh)
	return short
}

// LearnKey adds random bytes that are secret, under a name such as links-key. They are found in hexadecimal and Base64.
func (r *Redactor) LearnKey(name string, key []byte) {
	if r != nil && len(key) >= minValueLength {
		r.add([]value{{name: name, forms: keyForms(key)}})
	}
}

func (r *Redactor) add(fresh []value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.values.Load()
	fresh = slices.DeleteFunc(fresh, func(v value) bool { return slices.ContainsFunc(known, v.same) })
	if len(fresh) > 0 {
		all := slices.Concat(known, fresh)
		r.values.Store(&all)
	}
}

// Short returns the chosen variables whose values are too short to search for.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.short
}

// Text returns the text with marks instead of secrets.
func (r *Redactor) Text(text string) string {
	if r == nil {
		return text
	}
	found := r.find(text)
	if len(found) == 0 {
		return text
	}
	key := r.digestKey()
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.start])
		b.WriteString(mark(s.name, text[s.start:s.end], key))
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// Kinds returns the kinds of the secrets in a text, without duplicates: anthropic-key, env-GITHUB_TOKEN.
func (r *Redactor) Kinds(text string) []string {
	if r == nil {
		return nil
	}
	var out []string
	for _, s := range r.find(text) {
		if !slices.Contains(out, s.name) {
			out = append(out, s.name)
		}
	}
	return out
}

func (r *Redactor) digestKey() []byte {
	if r.key == nil {
		return nil
	}
	key, err := r.key()
	if err != nil {
		return nil // redaction matters more: the mark has no digest then
	}
	return key
}

// digestBytes is the number of digest bytes in a mark, enough to distinguish the secrets of a run.
const digestBytes = 2

func mark(name, secret string, key []byte) string {
	if len(key) == 0 {
		return "[redacted:" + name + "]"
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(secret))
	return "[redacted:" + name + ":" + hex.EncodeToString(h.Sum(nil)[:digestBytes]) + "]"
}

// span is the position of a secret in a text.
type span struct {
	start, end int
	name       string
}

// find returns the secrets of a text in order, without overlaps.
func (r *Redactor) find(text string) []span {
	var all []span
	values := *r.values.Load()
	var u lines
	if len(values) > 0 {
		u = unwrap(text)
	}
	for _, v := range values {
		all = append(all, v.find(text)...)
		if len(u.cut) > 0 {
			all = append(all, v.wrapped(u)...)
		}
	}
	all = append(all, known().find(text)...)
	for _, re := range r.patterns {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			start, end := m[0], m[1]
			if len(m) > 2 && m[2] >= 0 {
				start, end = m[2], m[3]
			}
			if end > start {
				all = append(all, span{start, end, "pattern"})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	return merge(dropMarked(all, text))
}

// merge merges overlapping secrets under the name of the first.
func merge(all []span) []span {
	var out []span
	for _, s := range all {
		if n := len(out); n > 0 && s.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// markPattern matches marks of earlier redactions. Only known names match: other text in brackets may contain a secret.
var markPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`\[redacted:(?:` + strings.Join(names(), "|") + `|pattern|env-[A-Z_][A-Z0-9_]{0,60})(?::[0-9a-f]{4})?\]`,
	)
})

// CanBe reports whether a redacted text can be the redaction of another one, whatever secrets were known.
func CanBe(redacted, text string) bool {
	var expr strings.Builder
	at := 0
	for _, m := range markPattern().FindAllStringIndex(redacted, -1) {
		expr.WriteString(regexp.QuoteMeta(redacted[at:m[0]]) + "(?s:.+)")
		at = m[1]
	}
	re, err := regexp.Compile(`\A` + expr.String() + regexp.QuoteMeta(redacted[at:]) + `\z`)
	return err == nil && re.MatchString(text)
}

// names returns the names of the forms.
func names() []string {
	var out []string
	for _, f := range known().forms {
		if !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// dropMarked removes spans inside marks. Both lists are sorted.
func dropMarked(all []span, text string) []span {
	hidden := markPattern().FindAllStringIndex(text, -1)
	return slices.DeleteFunc(all, func(s span) bool {
		i, _ := slices.BinarySearchFunc(hidden, s.start, func(m []int, at int) int { return m[1] - at - 1 })
		return i < len(hidden) && hidden[i][0] <= s.start && s.end <= hidden[i][1]
	})
}
