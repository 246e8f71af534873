// Package redact hides secrets in text: keys in their well-known forms, the values of chosen environment variables, and what the user's own
// patterns find.
//
// A secret gives way to a mark such as [redacted:anthropic-key:1a2b]. Its last part is a keyed digest: the same secret has the same mark wherever
// the same key is used, and nobody gets from the mark to the secret. Text without secrets comes back as it is, and a mark is never marked again.
// The time it takes grows with the length of the text and no faster, whatever the text is.
//
// It knows forms, not meanings: a password in plain words is hidden only where a variable or a pattern names it.
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

// Options say what is a secret besides the known forms.
type Options struct {
	Environ  []string               // NAME=value, as os.Environ gives them
	Names    []string               // of variables whose values are secrets; * stands for any characters
	Patterns []string               // RE2; the first group is the secret, or the whole match
	Key      func() ([]byte, error) // of the marks' digests; while there is none, marks have no digest
}

// Redactor hides secrets, for any number of goroutines. A nil one hides nothing.
type Redactor struct {
	mu       sync.Mutex // of who learns
	values   atomic.Pointer[[]value]
	names    []string
	patterns []*regexp.Regexp
	short    []string
	key      func() ([]byte, error)
}

// New checks the patterns. The error names every one that is none.
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

// Learn hides the secrets of another environment as well, from now on. It names the variables that were chosen and whose values are too short.
func (r *Redactor) Learn(environ []string) (short []string) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := *r.values.Load()
	fresh, short := valuesOf(environ, r.names)
	fresh = slices.DeleteFunc(fresh, func(v value) bool { return slices.ContainsFunc(known, v.same) })
	if len(fresh) > 0 {
		all := slices.Concat(known, fresh)
		r.values.Store(&all)
	}
	return short
}

// Short names the variables that were chosen and whose values are too short to be looked for.
func (r *Redactor) Short() []string {
	if r == nil {
		return nil
	}
	return r.short
}

// Text gives the text with marks in place of its secrets.
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

// Kinds says of which kinds the secrets in a text are, each once: anthropic-key, env-GITHUB_TOKEN.
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
		return nil // to hide is what counts: the mark is then without its digest
	}
	return key
}

// digits is how much of the digest a mark shows, in bytes: enough to tell the secrets of a run apart.
const digits = 2

func mark(name, secret string, key []byte) string {
	if len(key) == 0 {
		return "[redacted:" + name + "]"
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(secret))
	return "[redacted:" + name + ":" + hex.EncodeToString(h.Sum(nil)[:digits]) + "]"
}

// span is a secret in a text.
type span struct {
	start, end int
	name       string
}

// find gives the secrets of a text in their order; none overlaps another.
func (r *Redactor) find(text string) []span {
	var all []span
	for _, v := range *r.values.Load() {
		all = append(all, v.find(text)...)
	}
	for _, f := range forms {
		all = append(all, f.find(text)...)
	}
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
	return joined(outside(all, text))
}

// joined makes one of secrets that overlap, under the name of the first.
func joined(all []span) []span {
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

// marks are what earlier hiding left. The name has to be one that hiding gives: whoever writes brackets around a secret has hidden nothing.
var marks = regexp.MustCompile(`\[redacted:(?:` + strings.Join(names(), "|") + `|pattern|env-[A-Z_][A-Z0-9_]{0,60})(?::[0-9a-f]{4})?\]`)

// names are those of the forms.
func names() []string {
	var out []string
	for _, f := range forms {
		if !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// outside drops what lies in a mark or is one: it was hidden before. Both lists are in order.
func outside(all []span, text string) []span {
	hidden := marks.FindAllStringIndex(text, -1)
	return slices.DeleteFunc(all, func(s span) bool {
		i, _ := slices.BinarySearchFunc(hidden, s.start, func(m []int, at int) int { return m[1] - at - 1 })
		return i < len(hidden) && hidden[i][0] <= s.start && s.end <= hidden[i][1]
	})
}
