package watch

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/terminal"
)

// safeTexts returns a value whose texts do not control a terminal. Values with unsafe texts are copied; fields that are
// not exported stay as they are.
func safeTexts[T any](value T) T {
	v := reflect.ValueOf(&value).Elem()
	if !unsafe(v) {
		return value
	}
	v.Set(safeCopy(v))
	return value
}

// unsafe reports whether a value contains an unsafe text.
func unsafe(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return !utf8.ValidString(v.String()) || strings.ContainsFunc(v.String(), terminal.Unsafe)
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && unsafe(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && unsafe(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if unsafe(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if unsafe(at.Key()) || unsafe(at.Value()) {
				return true
			}
		}
	}
	return false
}

// safeCopy returns a copy of a value with safe texts.
func safeCopy(v reflect.Value) reflect.Value {
	if !unsafe(v) {
		return v
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(terminal.Safe(v.String()))
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(safeCopy(v.Elem()))
	case reflect.Interface:
		out.Set(safeCopy(v.Elem()))
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(safeCopy(v.Field(i)))
			}
		}
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(safeCopy(v.Index(i)))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for at := v.MapRange(); at.Next(); {
			out.SetMapIndex(safeCopy(at.Key()), safeCopy(at.Value()))
		}
	}
	return out
}
