package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/awake"
	"github.com/passbook-run/passbook/internal/doctor"
)

func TestKeepAwake(t *testing.T) {
	name := awake.Program()
	if name == "" {
		t.Skip("this system has no inhibitor")
	}
	for _, row := range []struct {
		name, script string
		keep         bool
		state        doctor.State
		detail       string
	}{
		{"off", "exit 1", false, doctor.OK, "calls do not keep this machine awake, as the settings say"},
		{"on", "exit 0", true, doctor.OK, name + " keeps this machine awake while calls run"},
		{"refused", "echo Access denied >&2; exit 1", true, doctor.Warning,
			"this machine may sleep while calls run: " + name + ": Access denied (exit status 1)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(t)
			o.Settings.KeepAwake = row.keep
			program(t, name, row.script)
			check := find(t, doctor.Examine(t.Context(), o), "keep awake")
			require.Equal(t, row.state, check.State)
			require.Equal(t, row.detail, check.Detail)
			require.Equal(t, row.state == doctor.Warning, check.Fix != "")
		})
	}
}
