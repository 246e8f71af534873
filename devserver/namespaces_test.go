package main

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
)

// described returns retention and search attributes of the namespace.
func (c *child) described(t *testing.T) (time.Duration, map[string]enumspb.IndexedValueType) {
	r, err := c.dial(t).WorkflowService().DescribeNamespace(testContext(t),
		&workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace})
	require.NoError(t, err)
	all, err := c.dial(t).OperatorService().ListSearchAttributes(testContext(t),
		&operatorservice.ListSearchAttributesRequest{Namespace: c.Namespace})
	require.NoError(t, err)
	return r.Config.WorkflowExecutionRetentionTtl.AsDuration(), all.CustomAttributes
}

func TestEveryStartUpdatesTheNamespace(t *testing.T) {
	host := "127.0.0.1"
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		require.NoError(t, l.Close())
		host = "::1" // of which the server also has a certificate
	}
	c, args := fresh(t, "--ip", host, "--headless", "--retention", "24h", "--search-attribute", "Stage=Keyword")
	kept, attributes := c.described(t)
	require.Equal(t, 24*time.Hour, kept)
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, attributes["Stage"])
	require.Zero(t, c.stop(syscall.SIGTERM))

	args = append(args[:len(args)-4], "--search-attribute", "Passes=Int", "--search-attribute", "Status=keyword")
	c = launch(t, args...)
	kept, attributes = c.described(t)
	require.Equal(t, 90*24*time.Hour, kept)
	for name, want := range map[string]enumspb.IndexedValueType{
		"Stage":  enumspb.INDEXED_VALUE_TYPE_KEYWORD, // of the first start
		"Passes": enumspb.INDEXED_VALUE_TYPE_INT, "Status": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	} {
		require.Equal(t, want, attributes[name], name)
	}
	require.Zero(t, c.stop(syscall.SIGTERM))

	opts, err := parse(append(args, "--search-attribute", "Stage=Int"), os.Stderr)
	require.NoError(t, err)
	_, err = openDatabase(t.Context(), opts)
	require.ErrorContains(t, err, "search attribute Stage has type Keyword on the server, not Int")
}

func TestAttributesNeedColumns(t *testing.T) {
	c := &persistencespb.NamespaceConfig{}
	asked := map[string]enumspb.IndexedValueType{}
	for name := range strings.SplitSeq("ABCDEFGHIJ", "") {
		asked[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	require.NoError(t, want(c, asked, retention))
	require.Len(t, c.CustomSearchAttributeAliases, 10)
	asked["K"] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	require.ErrorContains(t, want(c, asked, retention), "search attribute K: no column of type Keyword is left")
}
