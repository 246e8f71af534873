package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/passbook-run/passbook/internal/api"
)

// commandOf is the command of an operation without separate texts and flags.
func commandOf(o api.Operation) command {
	return command{o.Name, "more", o.Access == api.CanRead, func(a *app) *cobra.Command { return a.operation(o) }}
}

// operation is the command of an operation: its flags are the keys of the input, and their help is that of the keys. It
// prints the message of the output, or its fields.

func (a *app) operation(o api.Operation) *cobra.Command {
	cmd := &cobra.Command{Use: o.Name, Short: o.Summary, Long: strings.TrimSpace(o.Summary + ". " + o.Details)}
	in := reflect.New(o.Input).Elem()
	flags, asJSON := keyFlags(cmd.Flags(), in), new(bool)
	if o.Access == api.CanRead {
		asJSON = jsonFlag(cmd)
	}
	call := func(ctx context.Context, run string) error {
		sent := map[string]any{}
		if run != "" {
			sent["run"] = run
		}
		for key, name := range flags {
			if cmd.Flags().Changed(name) {
				sent[key] = in.FieldByIndex(fieldOf(o.Input, key)).Interface()
			}
		}
		raw, err := json.Marshal(sent)
		if err != nil {
			return err
		}
		out, err := o.Call(ctx, a.host(), raw)
		if err != nil {
			return err
		}
		return show(a, *asJSON, out, a.printed)
	}
	if fieldOf(o.Input, "run") == nil {
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return call(cmd.Context(), "") }
		return cmd
	}
	cmd.Use += " [RUN]"
	return a.onNamed(cmd, call)
}

// printed prints the message of an output, or its fields, a line each.
func (a *app) printed(out any) {
	v := reflect.ValueOf(out)
	if v.Kind() != reflect.Struct {
		fmt.Fprintln(a.out, out)
		return
	}
	if text := v.FieldByName("Message"); text.IsValid() {
		fmt.Fprintln(a.out, text)
		return
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && key != "-" {
			fmt.Fprintf(a.out, "%s: %v\n", strings.ReplaceAll(key, "_", " "), v.FieldByIndex(f.Index))
		}
	}
}

// keyFlags adds a flag for each key of an input except its run. flags are their names, by key.
func keyFlags(set *pflag.FlagSet, in reflect.Value) (flags map[string]string) {
	flags = map[string]string{}
	for _, f := range reflect.VisibleFields(in.Type()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || key == "run" || key == "-" {
			continue
		}
		name, help := strings.TrimPrefix(flagOf(key), "--"), f.Tag.Get("jsonschema")
		switch p := in.FieldByIndex(f.Index).Addr().Interface().(type) {
		case *bool:
			set.BoolVar(p, name, false, help)
		case *int:
			set.IntVar(p, name, 0, help)
		case *int64:
			set.Int64Var(p, name, 0, help)
		case *float64:
			set.Float64Var(p, name, 0, help)
		case *string:
			set.StringVar(p, name, "", help)
		case *[]string:
			set.StringSliceVar(p, name, nil, help)
		default: // needs a command in the table
			continue
		}
		flags[key] = name
	}
	return flags
}

// fieldOf is the index of the field of a key; nil: the input has none.
func fieldOf(input reflect.Type, key string) []int {
	for _, f := range reflect.VisibleFields(input) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key {
			return f.Index
		}
	}
	return nil
}
