package web

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
)

//go:embed page
var shared embed.FS

// Pages serves the files of one page. Below /shared/, it serves the files that all pages share.
func Pages(own fs.FS) http.Handler {
	common, err := fs.Sub(shared, "page")
	if err != nil {
		panic("web: the shared files are not embedded: " + err.Error())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /shared/", http.StripPrefix("/shared/", http.FileServerFS(common)))
	mux.Handle("GET /", http.FileServerFS(own))
	return mux
}

// Answer sends a value as JSON.
func Answer(w http.ResponseWriter, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		Fail(w, http.StatusInternalServerError, "the answer cannot be written")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // the page may have been closed
}

// Fail sends an error as JSON. The page shows it to the user.
func Fail(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	data, _ := json.Marshal(map[string]string{"error": why}) // encoding a string never fails
	_, _ = w.Write(data)                                     // the page may have been closed
}
