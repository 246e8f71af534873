package redact

import (
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
	forms []string
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

// encodings returns the secret as plain text, in a JSON string, and in a URL.
func encodings(secret string) []string {
	out := []string{secret}
	if raw, err := json.Marshal(secret); err == nil {
		out = append(out, string(raw[1:len(raw)-1]))
	}
	out = append(out, url.QueryEscape(secret), url.PathEscape(secret))
	slices.Sort(out)
	return slices.Compact(out)
}

func (v value) find(text string) []span {
	var out []span
	for _, form := range v.forms {
		for at := 0; ; {
			i := strings.Index(text[at:], form)
			if i < 0 {
				break
			}
			out = append(out, span{at + i, at + i + len(form), v.name})
			at += i + len(form)
		}
	}
	return out
}
