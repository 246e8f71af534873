package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
)

// printList prints a table. If the terminal is too narrow for the directories, each is on a separate line.
func (a *app) printList(r api.Listing, o listOptions) {
	if len(r.Runs) == 0 {
		a.printNoRuns(r, o)
	} else {
		dirs := directories(r.Runs)
		width := widthOf(a.out)
		rows := table(r.Runs, width, o.tree)
		inline := fits(rows, dirs, width)
		for i, row := range rows {
			if inline {
				fmt.Fprintln(a.out, row+"  "+dirs[i])
				continue
			}
			fmt.Fprintln(a.out, strings.TrimRight(row, " "))
			if i > 0 {
				fmt.Fprintln(a.out, "  "+dirs[i])
			}
		}
	}
	a.printListNotes(r)
}

func (a *app) printNoRuns(r api.Listing, o listOptions) {
	if o.filter.Narrow() {
		fmt.Fprintf(a.out, "No run matches. All runs: %s list\n", program())
		return
	}
	if r.Silent {
		fmt.Fprintf(a.out, "No run is known on this machine, and those in Temporal cannot be listed: %s.\n", r.Problem)
		return
	}
	fmt.Fprintf(a.out, "There are no runs yet. Start one: %s run --config FILE. Or see one that costs nothing: %s "+
		"demo\n",
		program(), program())
}

// printListNotes prints what the table does not show.
func (a *app) printListNotes(r api.Listing) {
	note := func(format string, args ...any) { fmt.Fprintf(a.out, "\n"+format+"\n", args...) }
	if len(r.Runs) < r.Total {
		note("%d of %d runs are shown; --limit 0 shows all.", len(r.Runs), r.Total)
	}
	if r.Problem != "" && len(r.Runs) > 0 {
		note("Status as recorded (%s).", r.Problem)
	}
	if n, oldest := withoutWorker(r.Runs); n > 0 {
		none := *oldest.EffectiveStatus.NoWorker
		note("%d open %s for a worker: %s. %s", n, map[bool]string{true: "run waits", false: "runs wait"}[n == 1],
			view.NoWorker(none), none.Fix(oldest.RunID, a.host().WorkerCommand()))
	}
	for _, row := range r.Runs {
		if held := row.EffectiveStatus.Held; held != nil {
			note("%.8s: %s.", row.RunID, held.Cause)
		}
		if row.Damage != "" {
			note("%.8s: %s. Check it: %s check %s", row.RunID, row.Damage, program(), shell.Quote(row.Directory))
		}
	}
	if n := len(r.Forgotten); n > 0 && r.Problem == "" {
		note("Further runs without directory and workflow: %d. To remove one from the list: %s remove RUN", n, program())
	} else if n > 0 {
		note("Further runs whose directory is missing: %d. Temporal may have them.", n)
	}
}

// withoutWorker counts the runs that no worker serves, and returns the one that has waited longest.
func withoutWorker(runs []operations.Row) (n int, oldest *operations.Row) {
	for i, r := range runs {
		none := r.EffectiveStatus.NoWorker
		if none == nil {
			continue
		}
		if n++; oldest == nil || none.Since < oldest.EffectiveStatus.NoWorker.Since {
			oldest = &runs[i]
		}
	}
	return n, oldest
}

// narrow is the width below which long names are cut to namesAtMost characters.
const (
	narrow      = 100
	namesAtMost = 14
)

// table returns the header and a line for each run, without the directory, all of one width. width is that of the
// terminal; 0: not a terminal. In a tree, projects are indented below their run, with their alias.
func table(runs []operations.Row, width int, tree bool) []string {
	all := columns()
	all = all[:len(all)-1]
	cells := make([][]string, len(runs)+1)
	for _, c := range all {
		cells[0] = append(cells[0], strings.ToUpper(c.name))
	}
	short := shortest(runs)
	for i, r := range runs {
		for _, c := range all {
			cells[i+1] = append(cells[i+1], cutName(c, c.text(r), width))
		}
		cells[i+1][0] = r.RunID[:min(short, len(r.RunID))]
		if tree && r.Alias != "" {
			cells[i+1][0] = "  " + cells[i+1][0]
			cells[i+1][1] = cutName(all[1], r.Alias, width)
		}
	}
	lines := make([]string, len(cells))
	for i, c := range all {
		most := 0
		for _, row := range cells {
			most = max(most, utf8.RuneCountInString(row[i]))
		}
		for n, row := range cells {
			if i > 0 {
				lines[n] += "  "
			}
			lines[n] += padded(row[i], most, c.right)
		}
	}
	return lines
}

func cutName(c column, text string, width int) string {
	r := []rune(text)
	if width == 0 || width >= narrow || len(r) <= namesAtMost || (c.name != "pipeline" && c.name != "stage") {
		return text
	}
	return string(r[:namesAtMost-1]) + "…"
}

func padded(s string, width int, right bool) string {
	fill := strings.Repeat(" ", width-utf8.RuneCountInString(s))
	if right {
		return fill + s
	}
	return s + fill
}

// shortest returns how many characters of an id tell the runs apart; at least eight.
func shortest(runs []operations.Row) int {
	for n := 8; ; n++ {
		seen := map[string]bool{}
		cut := false
		for _, r := range runs {
			seen[r.RunID[:min(n, len(r.RunID))]] = true
			cut = cut || len(r.RunID) > n
		}
		if len(seen) == len(runs) || !cut {
			return n
		}
	}
}

// directories returns the last column with its header, relative to the current directory if possible.
func directories(runs []operations.Row) []string {
	out := []string{"DIRECTORY"}
	for _, r := range runs {
		dir := "(no directory here)"
		if r.Directory != "" {
			dir = here(r.Directory)
		}
		out = append(out, dir)
	}
	return out
}

// here returns a directory relative to the current one, if it is below it.
func here(dir string) string {
	if now, err := os.Getwd(); err == nil {
		if inside, err := filepath.Rel(now, dir); err == nil && filepath.IsLocal(inside) {
			return inside
		}
	}
	return dir
}

// fits reports whether the directories fit behind the lines. Output that is not a terminal has no limit.
func fits(rows, dirs []string, width int) bool {
	for i := range rows {
		if width > 0 && utf8.RuneCountInString(rows[i])+2+utf8.RuneCountInString(dirs[i]) > width {
			return false
		}
	}
	return true
}
