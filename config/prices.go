package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/price"
)

// checkPrices reports all prices that cannot be read, each with its place.
func checkPrices(v *viper.Viper, fs *pflag.FlagSet, s Settings) error {
	var errs []error
	seen := map[string]bool{}
	for i, line := range s.Prices {
		row, err := price.ParseRow(line)
		if err == nil && seen[row.Pattern] {
			err = fmt.Errorf("price of %s: it is there twice; remove one", row.Pattern)
		}
		if seen[row.Pattern] = true; err != nil {
			errs = append(errs, fmt.Errorf("%s: prices: %w", placeOf(v, fs, i), err))
		}
	}
	return errors.Join(errs...)
}

// placeOf returns where an element of prices was set: FILE:LINE, a flag or a variable.
func placeOf(v *viper.Viper, fs *pflag.FlagSet, i int) string {
	if _, flag := given(fs)["prices"]; flag {
		return fmt.Sprintf("--prices, line %d", i+1)
	}
	if os.Getenv(variable("prices")) != "" {
		return fmt.Sprintf("%s, line %d", variable("prices"), i+1)
	}
	file := v.ConfigFileUsed()
	raw, err := os.ReadFile(file)
	var root struct {
		Prices yaml.Node `yaml:"prices"`
	}
	if err != nil || yaml.Unmarshal(raw, &root) != nil {
		return file
	}
	if items := root.Prices.Content; root.Prices.Kind == yaml.SequenceNode && i < len(items) {
		return fmt.Sprintf("%s:%d", file, items[i].Line)
	}
	return fmt.Sprintf("%s:%d", file, root.Prices.Line+lineOf(root.Prices, i))
}

// lineOf returns how far an element is below the begin of a text with one element on each line.
func lineOf(n yaml.Node, i int) int {
	if n.Style&yaml.LiteralStyle == 0 {
		return 0
	}
	for at, line := range strings.Split(n.Value, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if i--; i < 0 {
			return at + 1
		}
	}
	return 0
}
