package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/scaffold"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// initChoice is what the command line of `starter init` chooses.
type initChoice struct {
	kind, agent, dir string
	test             string // empty: what is found; "none": none
	yes              bool
	pulls            bool // the result is a pull request
}

// initSource is what a pipeline can work on here.
type initSource struct {
	has   scaffold.Source
	root  string   // of the repository; empty: none, or one without a commit
	dirty []string // files there with uncommitted changes
	err   error    // of opening or reading the repository
}

func (a *app) init() *cobra.Command {
	var c initChoice
	var names, lines []string
	for _, k := range scaffold.Kinds() {
		names = append(names, k.Name)
		lines = append(lines, fmt.Sprintf("  %-8s %s", k.Name, k.About))
	}
	cmd := &cobra.Command{
		Use: "init [KIND]", Short: "Write a pipeline for the current repository", ValidArgs: names,
		Long: `Write a small pipeline with its prompts for the repository in the current folder. The terminal asks for
what the command line does not name. Existing files are never overwritten: if one exists, nothing is written.

The command that tests the code and the one that sets up a new workspace are found for Go, Cargo, npm, pnpm, yarn,
Python, Gradle, Maven and a Makefile with the target test. Lock files determine the setup: npm ci for
package-lock.json.

Kinds:
` + strings.Join(lines, "\n"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return asUsage(errors.New("name one kind: " + strings.Join(names, ", ")))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.kind = args[0]
			}
			return a.initPipeline(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVar(&c.agent, "agent", "", "claude, codex or gemini (default: the first one in PATH)")
	cmd.Flags().StringVar(&c.dir, "dir", "", "folder for the pipeline (default: passbook/KIND)")
	cmd.Flags().StringVar(&c.test, "test", "", `command that tests the repository, run in its root, or "none" (default: found)`)
	cmd.Flags().BoolVar(&c.pulls, "pull-requests", false, "deliver into a pull request, and follow it until it is merged")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "ask nothing and use the defaults")
	return cmd
}

func (a *app) initPipeline(ctx context.Context, c initChoice) error {
	src := findSource(ctx)
	kind, err := a.chooseKind(ctx, c, src)
	if err != nil {
		return err
	}
	agent, err := a.chooseAgent(ctx, c)
	if err != nil {
		return err
	}
	o := scaffold.Options{Kind: kind, Agent: agent.Name, Git: src.has == scaffold.Repository}
	var commands scaffold.Commands
	if kind.Needs != scaffold.Nothing {
		if commands, err = a.chooseTest(ctx, c, src); err != nil {
			return err
		}
	} else if c.test != "" {
		return asUsage(fmt.Errorf("pipeline %s runs no tests; leave --test out", kind.Name))
	}
	o.Setup, o.Verify = commands.Setup, commands.Test
	dir := c.dir
	o.Name = filepath.Join(dir, scaffold.Definition)
	if dir == "" {
		dir, o.Name = filepath.Join(operations.PipelinesDir, kind.Name), kind.Name
	}
	if src.root != "" && o.Verify != "" {
		o.Judges = scaffold.JudgesOf(src.root, o.Verify)
	}
	o.PullRequests = c.pulls
	files, err := scaffold.Files(o)
	if err != nil {
		return err
	}
	if err := scaffold.Write(dir, files); err != nil {
		if errors.As(err, new(*scaffold.ConflictError)) {
			return fmt.Errorf("%w\nnothing was written; remove them, or name another folder with --dir", err)
		}
		return err
	}
	a.reportInit(o, agent, dir, files, commands.From, src)
	return nil
}

// findSource reports what the current folder offers.
func findSource(ctx context.Context) initSource {
	r, err := git.Open(ctx, ".")
	switch {
	case err == nil:
		dirt, err := r.Dirt(ctx)
		return initSource{has: scaffold.Repository, root: r.Root(), dirty: dirt.Paths, err: err}
	case errors.Is(err, git.ErrUnborn):
		return initSource{has: scaffold.Repository, err: err}
	}
	return initSource{has: scaffold.Folder, err: err}
}

// asks reports whether the user is asked.
func (a *app) asks(c initChoice) bool { return !c.yes && a.personThere() }

func (a *app) chooseKind(ctx context.Context, c initChoice, src initSource) (scaffold.Kind, error) {
	all := scaffold.Kinds()
	fits := slices.DeleteFunc(slices.Clone(all), func(k scaffold.Kind) bool { return k.Needs < src.has })
	var names, lines []string
	for _, k := range all {
		names = append(names, k.Name)
	}
	name := c.kind
	switch {
	case name != "":
	case c.yes:
		return fits[0], nil
	case !a.personThere():
		return scaffold.Kind{}, asUsage(fmt.Errorf("choose a pipeline: standard input is not a terminal; run \"starter "+
			"init KIND\" (%s), or add --yes", strings.Join(names, ", ")))
	default:
		names = names[:0]
		for _, k := range fits {
			names, lines = append(names, k.Name), append(lines, k.About)
		}
		var err error
		if name, err = a.pick(ctx, "What should the pipeline do?", names, lines, names[0]); err != nil {
			return scaffold.Kind{}, err
		}
	}
	i := slices.IndexFunc(all, func(k scaffold.Kind) bool { return k.Name == name })
	switch {
	case i < 0:
		return scaffold.Kind{}, asUsage(fmt.Errorf("unknown kind %q: choose %s", name, strings.Join(names, ", ")))
	case all[i].Needs < src.has:
		return scaffold.Kind{}, asUsage(fmt.Errorf("pipeline %s works on a git repository: %w; or choose another "+
			"kind: %s", name, src.err, kindNames(fits)))
	}
	return all[i], nil
}

func kindNames(kinds []scaffold.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// chooseAgent returns the named agent, or the first one in PATH; without any, the first one.
func (a *app) chooseAgent(ctx context.Context, c initChoice) (pipeline.Preset, error) {
	all := pipeline.Presets()
	var names, lines []string
	preset := ""
	for _, agent := range all {
		state := "not found in PATH"
		if path, ok := installed(agent); ok {
			state = path
			if preset == "" {
				preset = agent.Name
			}
		}
		names, lines = append(names, agent.Name), append(lines, state)
	}
	if preset == "" {
		preset = names[0]
	}
	name := c.agent
	if name == "" {
		name = preset
		if a.asks(c) {
			var err error
			if name, err = a.pick(ctx, "Which agent?", names, lines, preset); err != nil {
				return pipeline.Preset{}, err
			}
		}
	}
	i := slices.Index(names, name)
	if i < 0 {
		return pipeline.Preset{}, asUsage(fmt.Errorf("unknown agent %q: choose %s; any other command can be written into "+
			"the pipeline file (agent.run)", name, strings.Join(names, ", ")))
	}
	return all[i], nil
}

func installed(agent pipeline.Preset) (string, bool) {
	path, err := environ.LookPath(agent.Name, os.Environ())
	return path, err == nil
}

// chooseTest proposes the commands that set up and test the current folder, or the repository. They run in the
// repository's root.
func (a *app) chooseTest(ctx context.Context, c initChoice, src initSource) (scaffold.Commands, error) {
	here, err := filepath.Abs(".")
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return scaffold.Commands{}, err
	}
	root := cmp.Or(src.root, here)
	below, err := filepath.Rel(root, here)
	if err != nil {
		return scaffold.Commands{}, err
	}
	found, test := scaffold.Find(root, below), c.test
	if test == "" && a.asks(c) {
		question := "Command that tests the repository (empty: none): "
		if found.Test != "" {
			question = fmt.Sprintf("Command that tests the repository [%s] (\"none\": none): ", found.Test)
		}
		if test, err = a.prompted(ctx, question); err != nil {
			return scaffold.Commands{}, err
		}
	}
	switch test {
	case "", found.Test:
		return found, nil
	case "none":
		test = ""
	}
	return scaffold.Commands{Setup: scaffold.Setup(root, ".", test), Test: test}, nil
}

// pick asks for one of several names, by number or name. An empty answer is the preset.
func (a *app) pick(ctx context.Context, question string, names, lines []string, preset string) (string, error) {
	fmt.Fprintln(a.out, question)
	for i, name := range names {
		fmt.Fprintf(a.out, "  %d  %-8s %s\n", i+1, name, lines[i])
	}
	for {
		answer, err := a.prompted(ctx, fmt.Sprintf("Number or name [%s]: ", preset))
		if err != nil {
			return "", err
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(names) {
			return names[n-1], nil
		}
		switch {
		case answer == "":
			return preset, nil
		case slices.Contains(names, answer):
			return answer, nil
		}
		fmt.Fprintf(a.out, "There is no %q.\n", answer)
	}
}

// reportInit prints what was written, what to check in it, and the next commands.
func (a *app) reportInit(o scaffold.Options, agent pipeline.Preset, dir string, files []scaffold.File, from string, src initSource) {
	fmt.Fprintf(a.out, "Wrote %s:\n", run.Plural(len(files), "file"))
	for _, f := range files {
		fmt.Fprintf(a.out, "  %s\n", filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	if path, ok := installed(agent); ok {
		a.row("Agent", "%s (%s)", agent.Name, path)
	} else {
		a.row("Agent", "%s, which is not in PATH; install it and log in: %s", agent.Name, agent.Install)
	}
	switch {
	case o.Kind.Needs == scaffold.Nothing:
	case o.Verify == "":
		a.row("Tests", "none; no step runs a command. To add one, write a step \"run: COMMAND\" into the pipeline file")
	case from != "":
		a.row("Tests", "%s (because of %s); change it in the pipeline file and the prompts", o.Verify, from)
	default:
		a.row("Tests", "%s", o.Verify)
	}
	if len(o.Setup) > 0 {
		a.row("Setup", "%s", strings.Join(o.Setup, ", then "))
	}
	if found := src.unignored(scaffold.Installs(o.Setup)); len(found) > 0 {
		a.row("Ignore", "%s in .gitignore, and commit it; a run delivers every file that git does not ignore",
			strings.Join(found, ", "))
	}
	if missing := scaffold.Missing(append(o.Setup, o.Verify)...); len(missing) > 0 {
		a.row("Missing", "%s; install what is not in PATH, or write another command into the pipeline file (--test)",
			strings.Join(missing, ", "))
	}
	if errors.Is(src.err, git.ErrUnborn) && o.Kind.Needs != scaffold.Nothing {
		a.row("Commit", "the repository has no commit yet; a run starts from one, so commit first")
	}
	if len(src.dirty) > 0 && o.Kind.Needs != scaffold.Nothing {
		a.row("Changes", "not committed: %s; commit them, or add --dirty include (or exclude) to the run",
			someOf(src.dirty))
	}
	source := ""
	if o.Kind.Needs != scaffold.Nothing && !src.contains(dir) {
		source = " --source ."
	}
	fmt.Fprintf(a.out, "\nNext, check the pipeline, then run it with your task:\n  %s plan %s\n  %s run %s%s %s\n",
		program(), shell.Quote(o.Name), program(), shell.Quote(o.Name), source, shell.Quote(o.Kind.Task))
}

// unignored returns the folders that git would add to a commit of the repository.
func (s initSource) unignored(folders []string) []string {
	return slices.DeleteFunc(folders, func(name string) bool {
		return s.root == "" || exec.Command("git", "-C", s.root, "check-ignore", "-q", name+"/").Run() == nil
	})
}

// contains reports whether a folder is in the repository: a run of a definition in it works on this repository.
func (s initSource) contains(dir string) bool {
	if s.has != scaffold.Repository {
		return false
	}
	r, err := git.Open(context.Background(), dir)
	return errors.Is(err, git.ErrUnborn) || err == nil && r.Root() == s.root
}

// someOf lists the first paths, and counts the others.
func someOf(paths []string) string {
	const most = 3
	if len(paths) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
	}
	return strings.Join(paths, ", ")
}
