package git

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// configuration is the text of the configuration of the repository of a workspace: what git init writes, and no
// hooks, monitors or background work.
func configuration(format string, ignoreCase bool) string {
	version, extension := 0, ""
	if format != "sha1" {
		version, extension = 1, "[extensions]\n\tobjectformat = "+format+"\n"
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n\tbare = false\n\tignorecase = %t\n"+
		"\tlogallrefupdates = true\n\thooksPath = /dev/null\n\tfsmonitor = false\n[gc]\n\tauto = 0\n%s",
		version, ignoreCase, extension)
}

// textFile is a file below a git folder.
type textFile struct{ name, text string }

// writeFile writes a file and the folders above it.
func writeFile(in *os.Root, f textFile) error {
	if err := in.MkdirAll(path.Dir(f.name), 0o755); err != nil {
		return err
	}
	return in.WriteFile(f.name, []byte(f.text), 0o644)
}

// objectID is a complete id, of either object format.
var objectID = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// alternates is the text of objects/info/alternates that leads to one folder.
func alternates(folder string) string {
	if strings.ContainsAny(folder, "\n\"") {
		folder = quoted(folder)
	}
	return folder + "\n"
}

// quoted returns a path as git reads it between quotation marks.
func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		if c < ' ' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
			continue
		}
		b.WriteByte(c)
	}
	b.WriteByte('"')
	return b.String()
}
