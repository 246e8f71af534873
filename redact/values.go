package redact

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// shortest is how long the value of a variable must be to be looked for, in bytes: shorter ones are everywhere.
const shortest = 8

// value is a secret that is known.
type value struct {
	name  string // env-GITHUB_TOKEN
	forms []string
}

// valuesOf gives the values of the variables with those names, and names those that are too short.
func valuesOf(environ, names []string) (all []value, short []string) {
	for _, pair := range environ {
		name, secret, _ := strings.Cut(pair, "=")
		if secret == "" || !slices.ContainsFunc(names, func(glob string) bool { return named(glob, name) }) {
			continue
		}
		if len(strings.TrimSpace(secret)) < shortest {
			short = append(short, name)
			continue
		}
		all = append(all, value{name: "env-" + name, forms: spellings(strings.TrimSpace(secret))})
	}
	return all, short
}

func (v value) same(other value) bool {
	return v.name == other.name && slices.Equal(v.forms, other.forms)
}

func named(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// spellings are the secret as it is, in a JSON string, and in a URL.
func spellings(secret string) []string {
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
