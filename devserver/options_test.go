package main

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
)

func TestCommandLine(t *testing.T) {
	o, err := parse([]string{"server", "start-dev", "--ip", "localhost", "--port=7000", "--namespace", "a",
		"--namespace", "a",
		"--search-attribute", "X=datetime", "--dynamic-config-value", `k=1`, "--dynamic-config-value", `s="t"`,
		"--sqlite-pragma", "synchronous=extra", "--history-shards", "4", "--sqlite-connections", "2",
		"--ui-codec-endpoint", "http://127.0.0.1:8234", "--log-format", "pretty", "--log-level", "never",
		"--insecure"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", o.ip)
	require.Equal(t, 8000, uiPort(o))
	require.Equal(t, "http://127.0.0.1:8234", o.uiCodec)
	require.Equal(t, []string{"a", "default"}, o.namespaces)
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_DATETIME, o.attributes["X"])
	require.Equal(t, map[string]any{"k": 1, "s": "t"}, o.dynamic)
	require.Equal(t, map[string]string{"synchronous": "extra"}, o.pragmas)
	require.Equal(t, 2, o.connections)
	require.Equal(t, 4, o.shards)
	_, err = parse([]string{"--ip", "0.0.0.0", "--allow-remote", "--insecure"}, io.Discard)
	require.NoError(t, err)
}

func TestBadCommandLine(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"remote":            {[]string{"--ip", "0.0.0.0"}, "--ip 0.0.0.0: other machines could reach this server"},
		"remote UI":         {[]string{"--ui-ip", "192.0.2.1"}, "--ui-ip 192.0.2.1: other machines"},
		"no address":        {[]string{"--ip", "here"}, `"here": not an IP address`},
		"attribute":         {[]string{"--search-attribute", "X"}, `--search-attribute "X": want key=value`},
		"attribute type":    {[]string{"--search-attribute", "X=Word"}, "X=Word: no such type"},
		"dynamic value":     {[]string{"--dynamic-config-value", "k=word"}, "want JSON"},
		"two values":        {[]string{"--dynamic-config-value", "k=1 2"}, "more than one value"},
		"level":             {[]string{"--log-level", "loud"}, `--log-level "loud"`},
		"format":            {[]string{"--log-format", "xml"}, `--log-format "xml"`},
		"retention":         {[]string{"--retention", "1m"}, "refuses less than 1h"},
		"no connection":     {[]string{"--sqlite-connections", "0"}, "--sqlite-connections 0: it must be at least 1"},
		"no shard":          {[]string{"--history-shards", "-1"}, "--history-shards -1: it must be at least 1"},
		"left over":         {[]string{"stop"}, `unexpected argument "stop"`},
		"a verb but no dev": {[]string{"server", "start"}, `unexpected argument "server"`},
	} {
		_, err := parse(row.args, io.Discard)
		require.ErrorContains(t, err, row.want, name)
		require.Equal(t, exitUsage, run(t.Context(), row.args, io.Discard, io.Discard), name)
	}
}

func TestOccupiedPortIsReported(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	var stderr bytes.Buffer
	require.Equal(t, exitFault, run(t.Context(), []string{"--port", port, "--insecure"}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "address already in use")
	require.Contains(t, stderr.String(), "--port "+port)
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--version"}, &out, io.Discard))
	require.Regexp(t, `^passbook devserver \(Server 1\.32\.1, UI [\w.]+\)\n$`, out.String())
}
