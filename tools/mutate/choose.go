package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
)

// choose draws the sample, adds the faults to plant, and numbers all of them from 1.
func choose(code *source, o options) ([]*mutant, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("read -only: %w", err)
	}
	reasons, err := readEquivalent(filepath.Join(code.root, code.equivalent))
	if err != nil {
		return nil, err
	}
	var all [][]*mutant
	total := 0
	for _, t := range code.targets {
		found := slices.DeleteFunc(code.find(t), func(m *mutant) bool { return !only.MatchString(m.String()) })
		total += len(found)
		all = append(all, found)
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	var chosen []*mutant
	for _, found := range all {
		random.Shuffle(len(found), func(a, b int) { found[a], found[b] = found[b], found[a] })
		share := len(found)
		if total > o.number {
			share = min(o.number, max(1, (o.number*len(found)+total/2)/total))
		}
		found = found[:min(share, len(found))]
		chosen = append(chosen, found...)
	}
	if o.plant != "" {
		named, err := code.namedFaults()
		if err != nil {
			return nil, err
		}
		named = slices.DeleteFunc(named, func(m *mutant) bool { return !only.MatchString(m.String()) })
		chosen = append(chosen, named...)
	}
	for i, m := range chosen {
		m.id = i + 1
		if _, ok := reasons[m.key()]; ok && m.kind != fault {
			m.outcome = equivalent
		}
	}
	return chosen, nil
}
