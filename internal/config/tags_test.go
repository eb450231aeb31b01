package config

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bound that cannot be parsed would be 0.
func TestBoundsOfTagsCanBeParsed(t *testing.T) {
	for key, s := range everySetting() {
		least, most, isRange := strings.Cut(s.tag.Get("check"), "..")
		if !isRange {
			continue
		}
		for _, bound := range []string{strings.TrimPrefix(least, "0|"), most} {
			_, err := strconv.ParseFloat(bound, 64)
			if s.value.Type() == reflect.TypeFor[time.Duration]() {
				_, err = time.ParseDuration(bound)
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
}

// A default that cannot be read would be a problem of every file.
func TestDefaultsOfTagsCanBeRead(t *testing.T) {
	var d decoder
	for _, s := range everySetting() {
		if s.value.Kind() == reflect.Struct {
			d.setDefaults(reflect.New(s.value.Type()).Elem())
		}
	}
	if err := d.found.asError(""); err != nil {
		t.Error(err)
	}
}
