package host

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// binary is a server program.
type binary struct {
	path    string
	version string // of the Temporal server in it: 1.32.1
	foreign bool   // the temporal CLI or another server program
}

var serverVersion = lazyregexp.New(`Server (\d+\.\d+\.\d+)`)

// binary finds the server program to run: the configured one, or the one built from the source.
func (o *ServerOptions) binary(ctx context.Context, progress func(string)) (binary, error) {
	path := o.Binary
	if path == "" {
		var err error
		if path, err = o.built(ctx, progress); err != nil {
			return binary{}, err
		}
	}
	return inspect(ctx, path)
}

// inspect reads the version of a server program, on which its database depends.
func inspect(ctx context.Context, path string) (binary, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return binary{}, fmt.Errorf("the configured Temporal server %s: %w", path, err)
	}
	out, err := exec.CommandContext(ctx, found, "--version").CombinedOutput()
	if err != nil {
		return binary{}, fmt.Errorf("read the version of %s: %w: %s", found, err, lastLine(out))
	}
	m := serverVersion.FindSubmatch(out)
	if m == nil {
		return binary{}, fmt.Errorf("%s is not a Temporal server: --version prints %q; want one with \"Server x.y.z\"",
			found,
			lastLine(out))
	}
	return binary{path: found, version: string(m[1]), foreign: !strings.HasPrefix(string(out), "passbook ")}, nil
}

// database returns the name of the database, which contains the minor version: no other version may open it.
func (b binary) database() string {
	return "temporal-" + b.version[:strings.LastIndexByte(b.version, '.')] + ".db"
}
