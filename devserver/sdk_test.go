package main

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
)

// The SDK starts servers with its own idea of a command line; this one must understand it.
func TestSDKStartsServer(t *testing.T) {
	t.Setenv(asServer, "1")
	s, err := testsuite.StartDevServer(testContext(t), testsuite.DevServerOptions{
		ExistingPath:  os.Args[0],
		ClientOptions: &client.Options{Namespace: "book", Logger: quiet{}},
		EnableUI:      true,
		LogLevel:      "error",
		LogFormat:     "pretty",
		UIPort:        unusedPort(t),
		ExtraArgs:     []string{"--insecure"},
	})
	require.NoError(t, err)
	_, err = s.Client().CheckHealth(testContext(t), nil)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
}

// unusedPort is below the ports that the system gives to whoever asks for any, so that no server of another test gets
// it meanwhile.
func unusedPort(t *testing.T) string {
	for range 100 {
		port := strconv.Itoa(20000 + rand.IntN(10000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.FailNow(t, "no port is free")
	return ""
}
