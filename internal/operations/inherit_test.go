package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
)

// A request of the console does not replace the environment of a run by that of the console.
func TestInheritedEnvironment(t *testing.T) {
	state := t.TempDir()
	_, err := environ.Save(state, environ.Environment{RunID: "known", By: "start", At: time.Now(),
		Variables: []string{"PATH=/of/the/terminal", "MY_KEY=old"}})
	require.NoError(t, err)
	for _, c := range []struct {
		run, origin string
		inherit     bool
		path        string
	}{
		{"known", "", false, "/of/the/console"},
		{"known", "", true, "/of/the/terminal"},
		{"fork", "known", true, "/of/the/terminal"},
		{"fork", "known", false, "/of/the/console"},
		{"fresh", "", true, "/of/the/console"},
		{"fork-of-a-foreign-one", "foreign", true, "/of/the/console"},
	} {
		o := Operator{Settings: config.Settings{StateDir: state}, Inherit: c.inherit,
			Environ: []string{"PATH=/of/the/console", "MY_KEY=new"}}
		undo, err := o.handOver(c.run, c.origin, "file:///store", "resume", small)
		require.NoError(t, err)
		e, err := environ.Load(state, c.run)
		require.NoError(t, err)
		require.Equal(t, c.path, environ.Value(e.Variables, "PATH"), "%+v", c)
		require.NoError(t, undo())
	}
}
