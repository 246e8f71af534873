package git

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// text is the mode and the content of a file.
func (f File) text(t *testing.T) string {
	t.Helper()
	if f.Mode == "" {
		return ""
	}
	from := must(f.Content())(t)
	defer from.Close()
	return f.Mode + " " + string(must(io.ReadAll(from))(t))
}

// TestPuts: files as a checkout has them, converted by the attributes of before, and never by those of the run.
func TestPuts(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "1\n", "gone": "g\n", ".gitattributes": "*.txt eol=crlf\n"})
	start := head(t, dir)
	id := must(r.Record(t.Context(), Commit{Branch: "passbook/r", Parent: start, Start: start, Message: "work", Files: []File{
		file("a.txt", "2\n"), file("d/new.txt", "n\n"), {Path: "gone"}, {"l", ModeSymlink, content("a.txt")},
		{"tool", ModeExecutable, content("#!\n")}, file(".gitattributes", "*.txt -text\n* ident\n"), file("id", "$Id$\n"),
	}}))(t)
	paths := []string{".gitattributes", "a.txt", "d/new.txt", "gone", "id", "l", "tool"}
	d := Delivered{Base: start, Commit: id, Paths: paths}
	puts, drop, err := r.puts(t.Context(), d)
	require.NoError(t, err)
	before, after := map[string]string{}, map[string]string{}
	for _, p := range puts {
		before[p.path], after[p.path] = p.before.text(t), p.after.text(t)
	}
	require.Equal(t, map[string]string{".gitattributes": "100644 *.txt eol=crlf\n", "a.txt": "100644 1\r\n", "d/new.txt": "",
		"gone": "100644 g\n", "id": "", "l": "", "tool": ""}, before)
	require.Equal(t, map[string]string{".gitattributes": "100644 *.txt -text\n* ident\n", "a.txt": "100644 2\r\n",
		"d/new.txt": "100644 n\r\n", "gone": "", "id": "100644 $Id$\n", "l": "120000 a.txt", "tool": "100755 #!\n"}, after)
	run(t, dir, "checkout", "-q", "-f", "main")
	run(t, dir, "rm", "-q", "--cached", "-r", ".")
	run(t, dir, "reset", "-q", "--hard")
	require.NoError(t, r.putFiles(t.Context(), puts, true))
	require.NoError(t, r.putFiles(t.Context(), puts, false))
	require.Equal(t, "2\r\n", read(t, dir)["a.txt"])
	require.NoError(t, drop())
	_, err = puts[1].after.Content()
	require.Error(t, err, "its files are gone")
	d.Commit = "0123456"
	_, _, err = r.puts(t.Context(), d)
	require.Error(t, err)
}

// delivering is a repository with a recorded commit that is to be delivered to a branch.
func delivering(t *testing.T) (r *Repo, dir string, d Delivered) {
	t.Helper()
	r, dir = initial(t, files{"a": "1\n", "gone": "1\n", "other": "1\n", "d/x": "1\n"})
	d = Delivered{Branch: "result", Base: head(t, dir), Paths: []string{"a", "gone", "new"}, Trailer: trailer,
		Message: "Fix it\n\n" + trailer + "\n"}
	d.Commit = must(r.Record(t.Context(), Commit{Branch: "passbook/r", Parent: d.Base, Start: d.Base, Message: "work",
		Files: []File{file("a", "2\n"), {Path: "gone"}, file("new", "2\n"), file("other", "not delivered\n")}}))(t)
	return r, dir, d
}

func TestCommitOn(t *testing.T) {
	t.Parallel()
	r, dir, d := delivering(t)
	d.DryRun = true
	require.Empty(t, must(r.CommitOn(t.Context(), d))(t))
	require.Empty(t, run(t, dir, "branch", "--list", "result"))
	d.DryRun = false
	write(t, dir, files{"a": "of the user\n"})
	id := must(r.CommitOn(t.Context(), d))(t)
	require.Equal(t, id, run(t, dir, "rev-parse", "result"))
	require.Equal(t, d.Base, run(t, dir, "rev-parse", "result^"))
	require.Equal(t, files{"a": "100644 2\n", "new": "100644 2\n", "other": "100644 1\n", "d/x": "100644 1\n"}, listed(t, r, id))
	require.Equal(t, id, must(r.CommitOn(t.Context(), d))(t), "a repetition")
	require.Equal(t, "M a", status(t, dir))
}

// TestCommitOnABranchThatMovedOn: other files stay as they are there, and a conflict changes nothing.
func TestCommitOnABranchThatMovedOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		theirs    func(*testing.T, string)
		add       []File // to the run's commit, and to the delivery
		want      files  // nil: a conflict
		conflicts []string
	}{
		"in other files": {writes(files{"other": "theirs\n", "more": "m\n"}), nil, files{"a": "100644 2\n", "new": "100644 2\n",
			"other": "100644 theirs\n", "more": "100644 m\n", "d/x": "100644 1\n"}, nil},
		"in the same file":                {writes(files{"a": "theirs\n"}), nil, nil, []string{"a"}},
		"with the same change":            {writes(files{"a": "2\n", "new": "2\n"}), nil, files{"a": "100644 2\n", "new": "100644 2\n", "other": "100644 1\n", "d/x": "100644 1\n"}, nil},
		"in a file that the run removes":  {writes(files{"gone": "theirs\n"}), nil, nil, []string{"gone"}},
		"in a file that the run adds":     {writes(files{"new": "theirs\n"}), nil, nil, []string{"new"}},
		"by removal":                      {erases("a"), nil, nil, []string{"a"}},
		"with a folder where a file goes": {writes(files{"new/mine": "theirs\n"}), nil, nil, []string{"new/mine"}},
		"with a file where a folder goes": {writes(files{"sub": "theirs\n"}), []File{file("sub/new", "2\n")}, nil,
			[]string{"sub"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, dir, d := delivering(t)
			for _, f := range row.add {
				d.Paths = append(d.Paths, f.Path)
				d.Commit = must(r.Record(t.Context(), Commit{Branch: "passbook/r", Parent: d.Commit, Start: d.Base, Message: "more",
					Files: row.add}))(t)
			}
			run(t, dir, "checkout", "-q", "-b", "result")
			row.theirs(t, dir)
			run(t, dir, "add", "-A")
			run(t, dir, "commit", "-q", "-m", "theirs")
			theirs := head(t, dir)
			run(t, dir, "checkout", "-q", "main")
			id, err := r.CommitOn(t.Context(), d)
			if row.want == nil {
				var conflict *ConflictError
				require.ErrorAs(t, err, &conflict)
				require.Equal(t, row.conflicts, conflict.Paths)
				require.Equal(t, theirs, run(t, dir, "rev-parse", "result"))
				return
			}
			require.NoError(t, err)
			require.Equal(t, theirs, run(t, dir, "rev-parse", id+"^"))
			require.Equal(t, row.want, listed(t, r, id))
		})
	}
}

func TestCommitOnRefusesABranchThatIsOut(t *testing.T) {
	t.Parallel()
	r, dir, d := delivering(t)
	run(t, dir, "checkout", "-q", "-b", "result")
	_, err := r.CommitOn(t.Context(), d)
	require.Equal(t, dir, asBranch(err).Path)
	d.Branch = "not a branch"
	_, err = r.CommitOn(t.Context(), d)
	require.Error(t, err)
}

// TestRecordReplacesOwnCommits: those of an interrupted pass, of which the journal knows nothing; not those of others.
func TestRecordReplacesOwnCommits(t *testing.T) {
	t.Parallel()
	const own = "Passbook-Run: r"
	commit := func(message string, fs files) func(t *testing.T, dir, at string) {
		return func(t *testing.T, dir, at string) {
			run(t, dir, "checkout", "-q", "passbook/r")
			write(t, dir, fs)
			run(t, dir, "add", "-A")
			run(t, dir, "commit", "-q", "-m", message)
			run(t, dir, "checkout", "-q", "main")
		}
	}
	for name, row := range map[string]struct {
		then     func(t *testing.T, dir, at string)
		own      string
		replaced bool
	}{
		"the commit of a pass":   {commit("Pass 2\n\n"+own, files{"a": "2\n"}), own, true},
		"of another run":         {commit("Pass 2\n\nPassbook-Run: r2", files{"a": "2\n"}), own, false},
		"of a user":              {commit("Mine", files{"a": "2\n"}), own, false},
		"the line within a line": {commit("See "+own, files{"a": "2\n"}), own, false},
		"of a user after its own": {func(t *testing.T, dir, at string) {
			commit("Pass 2\n\n"+own, files{"a": "2\n"})(t, dir, at)
			commit("Mine", files{"b": "2\n"})(t, dir, at)
		}, own, false},
		"its own after one of a user": {func(t *testing.T, dir, at string) {
			commit("Mine", files{"b": "2\n"})(t, dir, at)
			commit("Pass 2\n\n"+own, files{"a": "2\n"})(t, dir, at)
		}, own, false},
		"reset to before": {func(t *testing.T, dir, at string) {
			run(t, dir, "update-ref", "refs/heads/passbook/r", at+"^")
		}, own, false},
		"without a line": {commit("Pass 2\n\n"+own, files{"a": "2\n"}), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, files{"a": "0\n"})
			start := head(t, dir)
			c := Commit{Branch: "passbook/r", Parent: start, Start: start, Message: "Pass 1\n\n" + own + "\n", Own: row.own,
				Files: []File{file("a", "1\n")}}
			c.Parent = must(r.Record(t.Context(), c))(t)
			row.then(t, dir, c.Parent)
			at := run(t, dir, "rev-parse", "passbook/r")
			c.Files = []File{file("a", "again\n")}
			id, err := r.Record(t.Context(), c)
			if !row.replaced {
				require.Equal(t, &BranchError{Branch: c.Branch, At: at}, asBranch(err))
				require.Equal(t, at, run(t, dir, "rev-parse", "passbook/r"))
				return
			}
			require.NoError(t, err)
			require.Equal(t, id, run(t, dir, "rev-parse", "passbook/r"))
			require.Equal(t, c.Parent, run(t, dir, "rev-parse", id+"^"))
			require.Equal(t, files{"a": "100644 again\n"}, listed(t, r, id))
		})
	}
}
