package main

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// plantedFault is a fault of a file, with the folders of the packages whose tests look for it.
type plantedFault struct {
	namedFault
	tests []string
}

// readPlanted reads the faults of a file: one a line, with tabs between name, file, function, old and new text. \n and
// \t in the texts stand for a line feed and a tab. A sixth column names folders of tests, divided by commas, beside
// those of the package itself.
func readPlanted(file string) ([]plantedFault, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the faults to plant: %w", err)
	}
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	var all []plantedFault
	for n, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimRight(line, " \r"); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 && len(f) != 6 {
			return nil, fmt.Errorf("read the faults to plant %s:%d: write NAME, FILE, FUNCTION, OLD and NEW, with tabs between",
				file, n+1)
		}
		p := plantedFault{namedFault{name: f[0], file: f[1], function: f[2], old: unescape.Replace(f[3]),
			text: unescape.Replace(f[4])}, []string{path.Dir(f[1])}}
		if len(f) == 6 {
			p.tests = append(p.tests, strings.Split(f[5], ",")...)
		}
		all = append(all, p)
	}
	return all, nil
}

// planted are the packages that the faults change, and the faults.
func planted(all []plantedFault) (targets []target, faults []namedFault) {
	for _, f := range all {
		faults = append(faults, f.namedFault)
		folder := path.Dir(f.file)
		at := slices.IndexFunc(targets, func(t target) bool { return t.folder == folder })
		if at < 0 {
			at, targets = len(targets), append(targets, target{folder: folder})
		}
		targets[at].tests = slices.Compact(slices.Sorted(slices.Values(append(targets[at].tests, f.tests...))))
	}
	return targets, faults
}
