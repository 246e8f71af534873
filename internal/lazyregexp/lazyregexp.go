// Package lazyregexp compiles the regular expressions of package variables on first use, so that a command pays only
// for those that it matches.
package lazyregexp

import (
	"regexp"
	"sync"
	"testing"
)

// Regexp is a regular expression, for concurrent use. Its methods are those of regexp.Regexp.
type Regexp func() *regexp.Regexp

// New returns an expression that is compiled on first use, and panics then if it is invalid. In tests it is compiled at
// once, so that every test of its package finds a mistake.
func New(expression string) Regexp {
	r := Regexp(sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) }))
	if testing.Testing() {
		r()
	}
	return r
}

func (r Regexp) MatchString(s string) bool                  { return r().MatchString(s) }
func (r Regexp) FindString(s string) string                 { return r().FindString(s) }
func (r Regexp) FindStringIndex(s string) []int             { return r().FindStringIndex(s) }
func (r Regexp) FindStringSubmatch(s string) []string       { return r().FindStringSubmatch(s) }
func (r Regexp) FindStringSubmatchIndex(s string) []int     { return r().FindStringSubmatchIndex(s) }
func (r Regexp) FindAllString(s string, n int) []string     { return r().FindAllString(s, n) }
func (r Regexp) FindAllStringIndex(s string, n int) [][]int { return r().FindAllStringIndex(s, n) }
func (r Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r().FindAllStringSubmatch(s, n)
}
func (r Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r().FindAllStringSubmatchIndex(s, n)
}
func (r Regexp) FindSubmatch(b []byte) [][]byte         { return r().FindSubmatch(b) }
func (r Regexp) ReplaceAllString(s, with string) string { return r().ReplaceAllString(s, with) }
func (r Regexp) ReplaceAllFunc(b []byte, f func([]byte) []byte) []byte {
	return r().ReplaceAllFunc(b, f)
}
func (r Regexp) Split(s string, n int) []string { return r().Split(s, n) }
func (r Regexp) Match(b []byte) bool            { return r().Match(b) }
