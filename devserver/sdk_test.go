package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
)

// The SDK starts servers with its own idea of a command line; this one must understand it.
func TestTheSDKStartsIt(t *testing.T) {
	t.Setenv(asServer, "1")
	s, err := testsuite.StartDevServer(testContext(t), testsuite.DevServerOptions{
		ExistingPath:  os.Args[0],
		ClientOptions: &client.Options{Namespace: "book", Logger: quiet{}},
		EnableUI:      true,
		LogLevel:      "error",
		LogFormat:     "pretty",
		UIPort:        "0",
	})
	require.NoError(t, err)
	_, err = s.Client().CheckHealth(testContext(t), nil)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
}
