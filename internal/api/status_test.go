package api

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestStatusesHaveBothVocabularies: in the outputs of HTTP and MCP, every status of a run has its word of RFC-0002.
func TestStatusesHaveBothVocabularies(t *testing.T) {
	found := 0
	for _, o := range Table() {
		for _, path := range lackingRFC(o.Output, o.Name, map[reflect.Type]bool{}, &found) {
			t.Errorf("%s has no rfc_status beside it", path)
		}
	}
	require.Greater(t, found, 5)
}

// lackingRFC returns the paths of the statuses without the other word.
func lackingRFC(of reflect.Type, path string, seen map[reflect.Type]bool, found *int) (lacking []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] {
		return nil
	}
	seen[of] = true
	shown := names(of, "rfc_status")
	for _, f := range reflect.VisibleFields(of) {
		key := f.Tag.Get("json")
		if key == "status" && f.Type == reflect.TypeFor[run.Status]() {
			*found++
			if !shown {
				lacking = append(lacking, path+".status")
			}
		}
		if key != "-" && f.IsExported() && !f.Anonymous {
			lacking = append(lacking, lackingRFC(f.Type, path+"."+key, seen, found)...)
		}
	}
	return lacking
}

func names(of reflect.Type, key string) bool {
	for _, f := range reflect.VisibleFields(of) {
		if f.Tag.Get("json") == key {
			return true
		}
	}
	return false
}
