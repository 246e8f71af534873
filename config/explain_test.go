package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainShowsTheSourceOfEverySetting(t *testing.T) {
	alone(t, "task_queue: of-the-file\ncalls: 2\nidle: 3h\nredact: {patterns: [x, y]}\n")
	t.Setenv("PASSBOOK_CODEC_KEY", "new")
	t.Setenv("PASSBOOK_CALLS", "3")
	t.Setenv("PASSBOOK_HEARTBEAT", "25s")
	t.Setenv("PASSBOOK_ENVIRONMENT", "") // as if it were not set
	all := must(Explain(flags(t, "--heartbeat", "30s")))(t)
	require.Len(t, all, len(every))
	home := os.Getenv("HOME")
	file := filepath.Join(home, "config", "passbook", "config.yaml")
	for _, want := range []Setting{
		{"heartbeat", "30s", "flag", "--heartbeat"},
		{"calls", "3", "environment", "PASSBOOK_CALLS"},
		{"task_queue", "of-the-file", "file", file},
		{"idle", "3h0m0s", "file", file},
		{"environment", "local", "default", ""},
		{"redact.env", "*_TOKEN,*_KEY,*_SECRET,*PASSWORD", "default", ""},
		{"redact.patterns", "x\ny", "file", file},
		{"codec.key", "new", "environment", "PASSBOOK_CODEC_KEY"},
		{"store", "file://" + home + "/state/passbook/store", "default", ""},
	} {
		require.Contains(t, all, want)
	}
}

func TestExplainReturnsTheErrorsOfLoad(t *testing.T) {
	alone(t, "calls: 0\n")
	_, err := Explain(flags(t))
	require.ErrorContains(t, err, "calls is 0; it must be at least 1")
	alone(t, "calls: [\n")
	_, err = Explain(flags(t))
	require.ErrorContains(t, err, "config.yaml")
}

func TestMasked(t *testing.T) {
	for _, row := range []struct{ value, want string }{
		{"plain", "plain"},
		{"/a/path with spaces", "/a/path with spaces"},
		{"file:///state/store", "file:///state/store"},
		{"s3://bucket?region=eu-central-1&prefix=a/", "s3://bucket?prefix=a/&region=eu-central-1"},
		{"s3://bucket?access_key=AKIA&region=x", "s3://bucket?access_key=********&region=x"},
		{"https://me:open-sesame@host/x", "https://me:********@host/x"},
	} {
		require.Equal(t, row.want, Masked(row.value))
	}
}
