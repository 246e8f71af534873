package form_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/console/form"
)

func TestTextsAreWhatAUserEntered(t *testing.T) {
	sent := url.Values{"csrf": {"x"}, "question": {"q"}, "request": {"r"}, "note": {" a note "}, "feedback": {"why"},
		"by": {" "}}
	require.Equal(t, []form.Text{{"Feedback", "why"}, {"Note", "a note"}}, form.Texts(sent))
}

func TestEqualFormsAreOneRequest(t *testing.T) {
	of := func(action string, sent url.Values) string { return form.Request(action, sent) }
	one := of("/fork", url.Values{"request": {"r"}, "task": {"t"}, "csrf": {"1"}})
	require.Equal(t, one, of("/fork", url.Values{"request": {"r"}, "task": {"t"}, "csrf": {"2"}}))
	for name, other := range map[string]string{
		"another action": of("/replay", url.Values{"request": {"r"}, "task": {"t"}}),
		"another form":   of("/fork", url.Values{"request": {"s"}, "task": {"t"}}),
		"another text":   of("/fork", url.Values{"request": {"r"}, "task": {"u"}}),
		"another field":  of("/fork", url.Values{"request": {"r"}, "note": {"t"}}),
	} {
		require.NotEqual(t, one, other, name)
	}
	require.Empty(t, of("/fork", url.Values{"task": {"t"}}))
}
