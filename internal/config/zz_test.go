package config

import (
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	path := write(b, 0o600, "telegram.token = \""+token+"\"\n")
	for b.Loop() {
		if _, err := LoadFrom(path, environment(nil)); err != nil {
			b.Fatal(err)
		}
	}
}
