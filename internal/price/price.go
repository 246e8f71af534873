// Package price computes what tokens cost, with the list prices of known models. It is pure: it asks no provider.
package price

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Price is in USD per million tokens.
type Price struct {
	Input      float64
	Output     float64
	CacheRead  float64
	CacheWrite float64
}

// Cached tokens cost this share of an input token if nothing else is known.
const (
	readShare  = 0.1
	writeShare = 1.25
)

// Of returns the price of an agent's definition. Without prices of cached tokens they are shares of input.
func Of(input, output, cacheRead, cacheWrite float64) Price {
	p := Price{Input: input, Output: output, CacheRead: cacheRead, CacheWrite: cacheWrite}
	if cacheRead == 0 {
		p.CacheRead = readShare * input
	}
	if cacheWrite == 0 {
		p.CacheWrite = writeShare * input
	}
	return p
}

// Cost returns USD.
func (p Price) Cost(t run.Tokens) float64 {
	return (float64(t.Input)*p.Input + float64(t.Output)*p.Output + float64(t.CacheRead)*p.CacheRead +
		float64(t.CacheWrite)*p.CacheWrite) / 1e6
}

// Row is the price of the models that match a pattern of [path.Match].
type Row struct {
	Pattern string
	Price   Price
	Date    string // YYYY-MM-DD, of the source
}

// List is a list of prices. The first match counts.
type List []Row

//go:embed prices.txt
var prices string

// Known returns the list prices of known models.
func Known() List {
	list, err := parse(prices)
	if err != nil {
		panic(err) // a test reads it
	}
	return list
}

// parse reads lines of a pattern, four prices and a date.
func parse(text string) (List, error) {
	var list List
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 6 {
			return nil, fmt.Errorf("price %q: it needs a model, four prices and a date", strings.TrimSpace(line))
		}
		row := Row{Pattern: fields[0], Date: fields[5]}
		for i, into := range []*float64{&row.Price.Input, &row.Price.Output, &row.Price.CacheRead, &row.Price.CacheWrite} {
			value, err := strconv.ParseFloat(fields[i+1], 64)
			if err != nil {
				return nil, fmt.Errorf("price of %s: %w", row.Pattern, err)
			}
			*into = value
		}
		list = append(list, row)
	}
	return list, nil
}

// version is an end of a model's name without an influence on its price.
var version = regexp.MustCompile(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest|\[[^\]]*\])$`)

// Find returns the price of a model.
func (l List) Find(model string) (Price, bool) {
	for name := model; name != ""; {
		for _, row := range l {
			if ok, err := path.Match(row.Pattern, name); ok && err == nil {
				return row.Price, true
			}
		}
		short := version.ReplaceAllString(name, "")
		if short == name {
			break
		}
		name = short
	}
	return Price{}, false
}
