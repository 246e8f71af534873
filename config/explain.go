package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
)

// Sources of a value.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromFile        = "file"
	FromDefault     = "default"
)

// Setting is one setting with its value and source. Secrets are masked.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`         // flag, environment, file or default
	From   string `json:"from,omitempty"` // the flag, variable or file; empty: the default
}

// Explain returns every setting, sorted by name. Its errors are those of [Load].
func Explain(fs *pflag.FlagSet) ([]Setting, error) {
	v, err := read(fs)
	if err != nil {
		return nil, err
	}
	s, err := decode(v)
	if err = errors.Join(err, checkPrices(v, fs, s)); err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := mapstructure.Decode(s, &values); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	flags := given(fs)
	var out []Setting
	for _, name := range names() {
		row := Setting{Name: name, Value: Masked(shown(values, name)), Source: FromDefault}
		_, flag := flags[name]
		switch {
		case flag:
			row.Source, row.From = FromFlag, "--"+flagName(name)
		case os.Getenv(variable(name)) != "":
			row.Source, row.From = FromEnvironment, variable(name)
		case v.InConfig(name):
			row.Source, row.From = FromFile, v.ConfigFileUsed()
		}
		out = append(out, row)
	}
	return out, nil
}

// shown returns a value in the form of its variable.
func shown(values map[string]any, name string) string {
	part, rest, nested := strings.Cut(name, ".")
	if nested {
		below, _ := values[part].(map[string]any)
		return shown(below, rest)
	}
	switch v := values[part].(type) {
	case Words:
		return strings.Join(v, ",")
	case Lines:
		return strings.Join(v, "\n")
	}
	return fmt.Sprint(values[part])
}

// Mask replaces a secret.
const Mask = "********"

// Masked returns a value without its secrets: the password of a URL, and the values of its query that are keys,
// tokens or secrets.
func Masked(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" || (u.User == nil && u.RawQuery == "") {
		return value
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), Mask)
	}
	query := u.Query()
	for name := range query {
		if secret(name) {
			query.Set(name, Mask)
		}
	}
	u.RawQuery = query.Encode()
	shown, err := url.PathUnescape(u.String()) // the mask is shown as it is
	if err != nil {
		return u.String()
	}
	return shown
}

func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"key", "secret", "token", "password", "credential", "sig"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
