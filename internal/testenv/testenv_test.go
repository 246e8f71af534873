package testenv_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
)

func TestProgramsReportsWhatAFolderLacks(t *testing.T) {
	built := t.TempDir()
	t.Setenv(testenv.ProgramsVar, built)
	require.NoError(t, os.WriteFile(filepath.Join(built, "starter"), nil, 0o700))
	dir, err := testenv.Programs("../..", t.TempDir(), "./starter")
	require.NoError(t, err)
	require.Equal(t, built, dir)
	_, err = testenv.Programs("../..", t.TempDir(), "./starter", "./worker", "./test/e2e/victim")
	require.ErrorContains(t, err, "without the program of ./worker")
	require.ErrorContains(t, err, "without the program of ./test/e2e/victim")
}

func TestCleanRemovesSettings(t *testing.T) {
	require.Equal(t, []string{"PASSBOOK_KEEPER=false", "PASSBOOK_KEEP_AWAKE=false", "PASSBOOK_SANDBOX_MODE=none",
		"HOME=/h",
		"MY_PASSBOOK_X=1"},
		testenv.CleanEnv([]string{"PASSBOOK_RUN_ROOT=/r", "HOME=/h", "TEMPORAL_ADDRESS=a", "MY_PASSBOOK_X=1"}))
}

func TestHoldPortsReleasesThem(t *testing.T) {
	testenv.HoldPorts()()
	release := testenv.HoldPorts()
	_, err := net.Listen("tcp", "127.0.0.1:7233")
	require.Error(t, err)
	release()
}
