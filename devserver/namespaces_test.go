package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
)

func (c *child) retention(t *testing.T) time.Duration {
	r, err := c.dial(t).WorkflowService().DescribeNamespace(testContext(t),
		&workflowservice.DescribeNamespaceRequest{Namespace: c.Namespace})
	require.NoError(t, err)
	return r.Config.WorkflowExecutionRetentionTtl.AsDuration()
}

func (c *child) attributes(t *testing.T) map[string]enumspb.IndexedValueType {
	r, err := c.dial(t).OperatorService().ListSearchAttributes(testContext(t),
		&operatorservice.ListSearchAttributesRequest{Namespace: c.Namespace})
	require.NoError(t, err)
	return r.CustomAttributes
}

func TestNamespaceIsBroughtToTheWantedValuesAtEveryStart(t *testing.T) {
	c, args := fresh(t, "--retention", "24h", "--search-attribute", "Stage=Keyword")
	require.Equal(t, 24*time.Hour, c.retention(t))
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, c.attributes(t)["Stage"])
	require.Zero(t, c.stop(syscall.SIGTERM))

	args = append(args[:len(args)-4], "--search-attribute", "Passes=Int", "--search-attribute", "Status=keyword")
	c = launch(t, args...)
	require.Equal(t, 90*24*time.Hour, c.retention(t))
	got := c.attributes(t)
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, got["Stage"], "an attribute of an earlier start is kept")
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_INT, got["Passes"])
	require.Equal(t, enumspb.INDEXED_VALUE_TYPE_KEYWORD, got["Status"])
	require.Zero(t, c.stop(syscall.SIGTERM))

	opts, err := parse(append(args, "--search-attribute", "Stage=Int"), os.Stderr)
	require.NoError(t, err)
	_, err = openDatabase(t.Context(), opts)
	require.ErrorContains(t, err, "search attribute Stage has type Keyword on the server, not Int")
}

func TestAttributesAreRefusedWhenTheColumnsAreUsedUp(t *testing.T) {
	c := &persistencespb.NamespaceConfig{}
	asked := map[string]enumspb.IndexedValueType{}
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"} {
		asked[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	require.NoError(t, want(c, asked, retention))
	require.Len(t, c.CustomSearchAttributeAliases, 10)
	asked["K"] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	require.ErrorContains(t, want(c, asked, retention), "search attribute K: no column of type Keyword is left")
}
