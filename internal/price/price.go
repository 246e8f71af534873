// Package price computes what tokens cost, with the list prices of known models. It is pure: it asks no provider.
package price

import (
	_ "embed"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
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

// With returns the prices of lines of the settings, then the list prices. A line that cannot be read is left out: the
// settings are checked when they are loaded.
func With(lines []string) List {
	var own List
	for _, line := range lines {
		if row, err := ParseRow(line); err == nil {
			own = append(own, row)
		}
	}
	return append(own, Known()...)
}

// parse reads lines of a pattern, four prices and a date.
func parse(text string) (List, error) {
	var list List
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		date := len(fields) - 1
		row, err := ParseRow(strings.Join(fields[:date], " "))
		if err != nil {
			return nil, err
		}
		row.Date = fields[date]
		list = append(list, row)
	}
	return list, nil
}

// maxPrice is the largest price of a million tokens, in USD.
const maxPrice = 1e6

// ParseRow reads MODEL INPUT OUTPUT [CACHE_READ CACHE_WRITE], in USD per million tokens. * and ? in the model match any
// characters.
func ParseRow(text string) (Row, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 && len(fields) != 5 {
		return Row{}, fmt.Errorf("price %q: write MODEL INPUT OUTPUT, or MODEL INPUT OUTPUT CACHE_READ CACHE_WRITE",
			strings.TrimSpace(text))
	}
	row := Row{Pattern: fields[0]}
	if _, err := path.Match(row.Pattern, ""); err != nil {
		return Row{}, fmt.Errorf("price of %s: the pattern is malformed; use *, ? and [a-z]", row.Pattern)
	}
	var usd [4]float64
	for i, field := range fields[1:] {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil || !(value >= 0 && value <= maxPrice) {
			return Row{}, fmt.Errorf("price of %s: %s is not a number of USD from 0 to %.0f", row.Pattern, field, maxPrice)
		}
		usd[i] = value
	}
	row.Price = Price{Input: usd[0], Output: usd[1], CacheRead: usd[2], CacheWrite: usd[3]}
	if len(fields) == 3 {
		row.Price = Of(usd[0], usd[1], 0, 0)
	}
	return row, nil
}

// version is an end of a model's name without an influence on its price.
var version = lazyregexp.New(`(-\d{8}|-\d{4}-\d{2}-\d{2}|-latest|\[[^\]]*\])$`)

// Has reports whether the price of a model is known.
func (l List) Has(model string) bool {
	_, ok := l.Find(model)
	return ok
}

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
