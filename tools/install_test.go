package tools

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInstallVerifiesTheSignature installs a release of a script, with a gh that accepts or refuses its signature.
func TestInstallVerifiesTheSignature(t *testing.T) {
	const bundle = "attestation.sigstore.json"
	script, err := filepath.Abs("../deploy/release/install.sh")
	require.NoError(t, err)
	name := fmt.Sprintf("passbook_1.2.3_%s_%s", runtime.GOOS, runtime.GOARCH)
	archive := packed(t, name+"/passbook", "#!/bin/sh\n")
	accepts := `[ "$2 $3" = "verify --help" ] || echo "$@" >>"$HOME/asked"`
	for row, c := range map[string]struct {
		gh     string // body of the program; empty: not installed
		bundle bool   // the release has a signature
		remote bool   // over HTTP
		want   string
		fails  bool
	}{
		"signed":                     {gh: accepts, bundle: true, want: "has signed it"},
		"signed, on a mirror":        {gh: accepts, bundle: true, remote: true, want: "has signed it"},
		"the signature is not valid": {gh: accepts + "\n[ \"$3\" = --help ]", bundle: true, fails: true, want: "no signature of the release workflow"},
		"removed from a mirror":      {gh: accepts, remote: true, fails: true, want: bundle + " cannot be downloaded"},
		"built here":                 {gh: accepts, want: "has no signature"},
		"no gh":                      {bundle: true, want: "was not checked"},
		"a gh without attestations":  {gh: "exit 1", bundle: true, want: "was not checked"},
	} {
		t.Run(row, func(t *testing.T) {
			if _, err := os.Stat("/usr/bin/gh"); c.gh == "" && err == nil {
				t.Skip("this machine has gh")
			}
			home, release, programs := t.TempDir(), t.TempDir(), t.TempDir()
			write := func(path string, data []byte) { require.NoError(t, os.WriteFile(path, data, 0o755)) }
			write(filepath.Join(release, name+".tar.gz"), archive)
			write(filepath.Join(release, "checksums.txt"), fmt.Appendf(nil, "%x  %s.tar.gz\n", sha256.Sum256(archive), name))
			if c.bundle {
				write(filepath.Join(release, bundle), []byte("{}"))
			}
			if c.gh != "" {
				write(filepath.Join(programs, "gh"), []byte("#!/bin/sh\n"+c.gh+"\n"))
			}
			from := release
			if c.remote {
				s := httptest.NewServer(http.FileServer(http.Dir(release)))
				defer s.Close()
				from = s.URL
			}
			cmd := exec.Command("sh", script, "--from", from)
			cmd.Env = []string{"HOME=" + home, "PATH=" + programs + ":/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.fails, err != nil, "%s", out)
			require.Contains(t, string(out), c.want)
			_, missing := os.Stat(filepath.Join(home, ".local/bin/passbook"))
			require.Equal(t, c.fails, missing != nil, "%s", out)
			if asked, err := os.ReadFile(filepath.Join(home, "asked")); c.want == "has signed it" {
				require.NoError(t, err)
				require.Regexp(t, `^attestation verify \S+/`+name+`\.tar\.gz --bundle \S+/`+bundle+
					` --repo passbook-run/passbook --signer-workflow passbook-run/passbook/\.github/workflows/release\.yml\n$`, string(asked))
			}
		})
	}
}

// packed is an archive with one program.
func packed(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}))
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}
