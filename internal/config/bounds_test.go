package config

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bound that cannot be read would be 0.
func TestBoundsOfTagsCanBeRead(t *testing.T) {
	for _, table := range []any{Config{}, Sandbox{}, Heartbeat{}, Job{}, Hook{}, User{}} {
		checkTags(t, reflect.TypeOf(table))
	}
}

func checkTags(t *testing.T, table reflect.Type) {
	for _, f := range reflect.VisibleFields(table) {
		least, top, bounds := strings.Cut(f.Tag.Get("is"), "..")
		if f.Type.Kind() == reflect.Struct {
			checkTags(t, f.Type)
		}
		if !bounds {
			continue
		}
		for _, bound := range []string{least, top} {
			_, err := strconv.ParseFloat(bound, 64)
			if f.Type == reflect.TypeFor[time.Duration]() {
				_, err = time.ParseDuration(bound)
			}
			if err != nil {
				t.Errorf("%s.%s: %v", table.Name(), f.Name, err)
			}
		}
	}
}
