package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxAtInit is the maximum number of bytes that one of our packages allocates before main.
const maxAtInit = 16 << 10

// initialized is what the runtime reports about one of our packages.
var initialized = regexp.MustCompile(`(?m)^init github\.com/passbook-run/passbook/(\S+) @.* (\d+) bytes, \d+ allocs$`)

// TestStartupInitializesLittle: every command pays for what its packages build before main.
func TestStartupInitializesLittle(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(filepath.Join(programs, "starter"), "--help")
	var trace bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), "GODEBUG=inittrace=1"), &trace
	require.NoError(t, cmd.Run(), &trace)
	packages := initialized.FindAllStringSubmatch(trace.String(), -1)
	require.Greater(t, len(packages), 20)
	for _, p := range packages {
		size, err := strconv.Atoi(p[2])
		require.NoError(t, err)
		assert.LessOrEqual(t, size, maxAtInit, "%s builds much before main; use lazyregexp.New or sync.OnceValue", p[1])
	}
}
