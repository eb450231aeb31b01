package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/app"
	"ductor/internal/store"
)

// The configured zone applies to all times that ductor writes, here to the name of a backup.
func TestTimesAreInTheConfiguredZone(t *testing.T) {
	town := surroundings(t, nil)
	path := town.writeConfig()
	if err := os.MkdirAll(town.cfg.Storage.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(town.cfg.Storage.Dir, app.DatabaseFile), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// These zones are 26 hours apart, so at least one of them is not the machine's.
	for _, zone := range []string{"Pacific/Kiritimati", "Etc/GMT+12"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(filepath.Dir(path), "zone.toml")
		b = bytes.Replace(b, []byte("[telegram]"), []byte("[telegram]\nzone = \""+zone+"\""), 1)
		if err := os.WriteFile(config, b, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if code, _, said := runDuctor(t, "backup", dir+"/", "-c", config); code != exitOK {
			t.Fatalf("exit %d: %s", code, said)
		}
		names, err := filepath.Glob(filepath.Join(dir, "ductor-*.tar.gz"))
		if err != nil || len(names) != 1 {
			t.Fatalf("%v, %v", names, err)
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		named := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(names[0]), "ductor-"), ".tar.gz")
		at, err := time.ParseInLocation("20060102-150405", named, loc)
		if age := time.Since(at); err != nil || age < -time.Minute || age > time.Hour {
			t.Errorf("in %s the backup is called %s: %v", zone, names[0], err)
		}
	}
}
