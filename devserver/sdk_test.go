package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
)

// TestSDKStartsServer: the server accepts the command line with which the SDK starts a server in memory.
func TestSDKStartsServer(t *testing.T) {
	t.Setenv(asServer, "1")
	s, err := testsuite.StartDevServer(testContext(t), testsuite.DevServerOptions{
		ExistingPath:  os.Args[0],
		ClientOptions: &client.Options{Namespace: "book", Logger: quiet{}},
		LogLevel:      "error",
		LogFormat:     "pretty",
		ExtraArgs:     []string{"--insecure"},
	})
	require.NoError(t, err)
	_, err = s.Client().CheckHealth(testContext(t), nil)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
}
