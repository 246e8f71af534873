package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AtOnce bounds how many calls of agents run at the same time on a host, whatever runs and workers make them. 0: no
// bound. Others wait for their turn.
type AtOnce struct {
	Host     int   `mapstructure:"host"`
	Account  int   `mapstructure:"account"`  // of each account
	Accounts Words `mapstructure:"accounts"` // NAME=NUMBER of accounts with another bound
}

// Of returns the bound of an account.
func (a AtOnce) Of(name string) int {
	for _, text := range a.Accounts {
		if of, n, err := parseAccount(text); err == nil && of == name {
			return n
		}
	}
	return a.Account
}

func (a AtOnce) check() error {
	var errs []error
	if a.Host < 0 || a.Account < 0 {
		errs = append(errs, errors.New("settings: at_once.host and at_once.account must be at least 0; 0 is no bound"))
	}
	for _, text := range a.Accounts {
		if _, _, err := parseAccount(text); err != nil {
			errs = append(errs, fmt.Errorf("settings: at_once.accounts has %q; write NAME=NUMBER with the name of an account "+
				"and a number of calls, as in work=2; 0 is no bound", text))
		}
	}
	return errors.Join(errs...)
}

// parseAccount parses NAME=NUMBER.
func parseAccount(text string) (name string, n int, err error) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return "", 0, errors.New("no NAME=NUMBER")
	}
	n, err = strconv.Atoi(strings.TrimSpace(text[i+1:]))
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	return strings.TrimSpace(text[:i]), n, err
}
