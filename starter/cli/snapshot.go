package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store/tree"
)

// SnapshotLine is one turn of `snapshot list --json`.
type SnapshotLine struct {
	Turn      int     `json:"turn"`
	At        string  `json:"at"`
	Step      string  `json:"step"`
	Round     int     `json:"round"`
	Role      string  `json:"role"`
	Call      string  `json:"call"`
	Outcome   string  `json:"outcome"` // ok, or what it was given up with
	Changed   int     `json:"changed"` // files and folders
	Tree      string  `json:"tree"`
	USD       float64 `json:"usd"`
	Abandoned bool    `json:"abandoned"` // a revert went back behind it
}

// SnapshotReport is `snapshot show --json`. Bytes that are no UTF-8 are shown as U+FFFD.
type SnapshotReport struct {
	Turn    int             `json:"turn"`
	Tree    string          `json:"tree"`
	Entries []SnapshotEntry `json:"entries"`
}

// SnapshotEntry is one file, symlink or folder of a tree.
type SnapshotEntry struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // file, executable, symlink or folder
	Perm string `json:"perm"` // octal; empty: a symlink
	Size int64  `json:"size"` // bytes
	Hash string `json:"sha256"`
	Link string `json:"link"` // target of a symlink
}

// CheckoutReport is `snapshot checkout --json`.
type CheckoutReport struct {
	Turn int    `json:"turn"`
	Tree string `json:"tree"`
	Dir  string `json:"dir"`
}

func (a *app) snapshot() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "snapshot", Short: "The trees that the turns of a run have left: list, show, compare, bring back",
		Long: `A turn is one call of a role that gives changes, settled. Each leaves a snapshot: the whole working tree as it was at its end. Turn 0 is what
the run began with. A first argument that is a number is a turn and not a run. No server is asked or needed.

` + exitCodesHelp,
	})
	cmd.AddCommand(a.snapshotList(), a.snapshotShow(), a.snapshotDiff(), a.snapshotCheckout())
	return cmd
}

func (a *app) snapshotList() *cobra.Command {
	return offline(a, "list", "The turns of a run: call, role, how much it changed, tree and cost", readSnapshots, a.printSnapshots)
}

func readSnapshots(d rundir.Dir) ([]SnapshotLine, error) {
	versions, err := d.Versions()
	lines := []SnapshotLine{}
	for _, v := range versions {
		if v.Cause == rundir.FromTurn {
			lines = append(lines, SnapshotLine{v.Turn, v.TS, v.Step, v.Round, v.Role, v.Call, v.Outcome, v.Changed, v.Tree, v.USD, v.Abandoned})
		}
	}
	return lines, err
}

func (a *app) printSnapshots(lines []SnapshotLine) {
	if len(lines) == 0 {
		fmt.Fprintln(a.out, "No turn yet: one is each settled call of a role that gives changes.")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TURN\tROLE\tCALL\tCHANGED\tTREE\tCOST\tOUTCOME")
	for _, l := range lines {
		outcome := l.Outcome
		if l.Abandoned {
			outcome += ", left behind by a revert"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%.12s\t%s\t%s\n", l.Turn, l.Role, callOf(l.Call), l.Changed, l.Tree, usd(l.USD), outcome)
	}
	w.Flush()
}

// callOf is a call's id without the run's.
func callOf(id string) string {
	if _, rest, ok := strings.Cut(id, "/"); ok {
		return rest
	}
	return id
}

// aboutTurns makes a verb that takes a run and turns.
func (a *app) aboutTurns(cmd *cobra.Command, do func(ctx context.Context, s *operate.Snapshots, args []string) error) *cobra.Command {
	var dir string
	cmd.Flags().StringVar(&dir, "output-dir", "", "the run directory, instead of naming the run")
	cmd.Long = cmd.Short + ". No server is asked or needed.\n\n" + exitCodesHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		run := dir
		if dir == "" && len(args) > 0 {
			if _, err := strconv.Atoi(args[0]); err != nil {
				run, args = args[0], args[1:]
			}
		}
		if len(args) == 0 {
			return asUsage(errors.New("say which turn: a number; starter snapshot list tells which there are"))
		}
		d, err := a.find(run)
		if err != nil {
			return err
		}
		s, err := operate.OpenSnapshots(cmd.Context(), d)
		if err != nil {
			return err
		}
		return errors.Join(do(cmd.Context(), s, args), s.Close())
	}
	return cmd
}

// turnOf reads the number of a turn.
func turnOf(arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 0 {
		return 0, asUsage(fmt.Errorf("%q is not the number of a turn", arg))
	}
	return n, nil
}

func (a *app) snapshotShow() *cobra.Command {
	var asJSON bool
	cmd := a.aboutTurns(&cobra.Command{Use: "show [RUN] N", Short: "The files of the tree that turn N left", Args: between(1, 2)},
		func(ctx context.Context, s *operate.Snapshots, args []string) error {
			n, err := turnOf(args[0])
			if err != nil {
				return err
			}
			t, err := s.Tree(ctx, n)
			if err != nil {
				return err
			}
			r := snapshotReport(n, t)
			if asJSON {
				return a.json(r)
			}
			return a.printSnapshot(r)
		})
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func snapshotReport(n int, t tree.Tree) SnapshotReport {
	r := SnapshotReport{Turn: n, Tree: string(t.Digest()), Entries: []SnapshotEntry{}}
	for _, e := range t.Entries {
		line := SnapshotEntry{Path: strings.ToValidUTF8(e.Path, "�"), Mode: string(e.Mode), Size: e.Size, Hash: string(e.Digest), Link: strings.ToValidUTF8(e.Link, "�")}
		if e.Mode != tree.ModeSymlink {
			line.Perm = fmt.Sprintf("%04o", e.Perm)
		}
		r.Entries = append(r.Entries, line)
	}
	return r
}

func (a *app) printSnapshot(r SnapshotReport) error {
	fmt.Fprintf(a.out, "Turn %d, tree %s\n", r.Turn, r.Tree)
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODE\tPERM\tSIZE\tSHA256\tPATH")
	for _, e := range r.Entries {
		path := strconv.Quote(e.Path)
		path = path[1 : len(path)-1] // a name may hold anything
		if e.Link != "" {
			path += " -> " + e.Link
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.12s\t%s\n", e.Mode, e.Perm, e.Size, e.Hash, path)
	}
	return w.Flush()
}

func (a *app) snapshotDiff() *cobra.Command {
	var o diffOptions
	cmd := a.aboutTurns(&cobra.Command{Use: "diff [RUN] N [M]", Short: "What turn N has changed; or what is other in the tree of turn M than in that of turn N", Args: between(1, 3)},
		func(ctx context.Context, s *operate.Snapshots, args []string) error {
			if err := o.oneForm(); err != nil {
				return err
			}
			from, to, err := treesOf(s, args)
			if err != nil {
				return err
			}
			c, drop, err := s.Compare(ctx, from, to)
			if err != nil {
				return err
			}
			return errors.Join(a.printComparison(ctx, c, o), drop())
		})
	o.flags(cmd)
	return cmd
}

// treesOf are the two trees that are compared.
func treesOf(s *operate.Snapshots, args []string) (from, to string, err error) {
	n, err := turnOf(args[0])
	if err != nil {
		return "", "", err
	}
	one, err := s.Turn(n)
	if err != nil {
		return "", "", err
	}
	if len(args) == 1 && n == 0 {
		return "", "", asUsage(errors.New("turn 0 is what the run began with: say which turn to compare it with"))
	}
	if len(args) == 1 {
		return one.Before, one.Tree, nil
	}
	m, err := turnOf(args[1])
	if err != nil {
		return "", "", err
	}
	other, err := s.Turn(m)
	return one.Tree, other.Tree, err
}

func (a *app) snapshotCheckout() *cobra.Command {
	var force, asJSON bool
	cmd := a.aboutTurns(&cobra.Command{Use: "checkout [RUN] N DIR", Short: "Bring the tree that turn N left back, into an empty or new folder", Args: between(2, 3)},
		func(ctx context.Context, s *operate.Snapshots, args []string) error {
			if len(args) != 2 {
				return asUsage(errors.New("say which turn and where to: starter snapshot checkout [RUN] N DIR"))
			}
			n, err := turnOf(args[0])
			if err != nil {
				return err
			}
			var v rundir.Version
			err = a.metered(ctx, "Bringing back the tree", func(ctx context.Context) error {
				v, err = s.Checkout(ctx, n, args[1], force)
				return err
			})
			if err != nil {
				return err
			}
			dir, err := filepath.Abs(args[1])
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(CheckoutReport{Turn: n, Tree: v.Tree, Dir: dir})
			}
			_, err = fmt.Fprintf(a.out, "%s holds the tree of turn %d\n", dir, n)
			return err
		})
	cmd.Flags().BoolVar(&force, "force", false, "also into a folder that holds something: what is not in the snapshot is deleted there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// between wants so many arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return asUsage(fmt.Errorf("say it so: starter %s", strings.TrimPrefix(cmd.UseLine(), "starter ")))
		}
		return nil
	}
}
