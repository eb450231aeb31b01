package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// File is a file that a user or the bot sends.
type File struct {
	Name string
	MIME string
	Data []byte
	// Size is the size that Telegram reports. It can be larger than Data, to simulate large files. Zero means the
	// length of Data.
	Size int64
}

func (f File) size() int64 {
	if f.Size > 0 {
		return f.Size
	}
	return int64(len(f.Data))
}

// storedFile is a file on the server. The file gets a path when the bot calls getFile.
type storedFile struct {
	id, unique string
	kind       mediaKind
	file       File
	path       string
}

// fileStore contains all files, by ID. If it has a limit, it drops the oldest files.
type fileStore struct {
	byID   map[string]*storedFile
	order  []string
	limit  int64
	local  string // directory set by KeepLocally
	held   int64
	byPath map[string]*storedFile
}

func newFileStore(limit int64) fileStore {
	return fileStore{byID: map[string]*storedFile{}, byPath: map[string]*storedFile{}, limit: limit}
}

func (fs *fileStore) add(serial int64, kind mediaKind, f File) *storedFile {
	n := strconv.FormatInt(serial, 10)
	stored := &storedFile{id: "file-" + n, unique: "unique-" + n, kind: kind, file: f}
	stored.path = fmt.Sprintf("%s/file_%s%s", kind.folder(), n, strings.ToLower(path.Ext(f.Name)))
	if kind == photoKind {
		stored.path = fmt.Sprintf("photos/file_%s.jpg", n)
	}
	fs.byID[stored.id] = stored
	fs.order = append(fs.order, stored.id)
	fs.held += int64(len(f.Data))
	for fs.limit > 0 && fs.held > fs.limit && len(fs.order) > 1 {
		oldest := fs.byID[fs.order[0]]
		fs.order = fs.order[1:]
		fs.held -= int64(len(oldest.file.Data))
		delete(fs.byID, oldest.id)
		delete(fs.byPath, oldest.path)
	}
	return stored
}

// FileData returns the content of a file. It returns false if the ID is unknown.
func (s *Server) FileData(id string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files.byID[id]
	if f == nil {
		return nil, false
	}
	return f.file.Data, true
}

func (s *Server) getFile(q *request) (any, *Error) {
	id := q.params["file_id"]
	if id == "" {
		return nil, badRequest("file_id not specified")
	}
	f := s.files.byID[id]
	if f == nil {
		return nil, badRequest("wrong file_id or the file is temporarily unavailable")
	}
	if f.file.size() > MaxDownload && s.files.local == "" {
		return nil, badRequest("file is too big")
	}
	at := f.path
	if s.files.local != "" {
		at = filepath.Join(s.files.local, s.opts.Token, f.path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.file.Data, 0o644)); err != nil {
			return nil, &Error{Code: http.StatusInternalServerError, Description: err.Error()}
		}
	} else {
		s.files.byPath[f.path] = f
	}
	return map[string]any{
		"file_id": f.id, "file_unique_id": f.unique, "file_size": f.file.size(), "file_path": at,
	}, nil
}

// KeepLocally makes the server behave like a Bot API server with the option --local: it stores files below dir, returns
// their paths, and accepts files of any size. Files cannot be downloaded.
func (s *Server) KeepLocally(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.local = dir
}

// serveFile handles a download. It records the download as a call of the method "file".
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	call := Call{At: s.now(), Method: "file"}
	token, name, _ := strings.Cut(rest, "/")
	call.Params = map[string]string{"path": name}
	fault := s.faults.count(call)
	call.Fault = fault.Kind
	if fault.before(r.Context(), s.base) {
		s.finish(call, nil, nil)
		panic(http.ErrAbortHandler)
	}
	if answer, ok := fault.errorPage(); ok {
		call.Code = answer.status
		s.finish(call, nil, nil)
		answer.write(w)
		return
	}
	data, failure := s.download(token, name)
	s.finish(call, data, failure)
	if failure != nil {
		writeError(w, failure)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if fault.Kind == DropAfter {
		breakOff(w, data[:len(data)/2])
	}
	if !fault.spoilResponse(w, data) {
		_, _ = w.Write(data) // an error means that the client has disconnected
	}
}

// breakOff sends only a part of the response, and then breaks the connection.
func breakOff(w http.ResponseWriter, part []byte) {
	_, _ = w.Write(part)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func (s *Server) download(token, name string) ([]byte, *Error) {
	if token != s.opts.Token {
		return nil, unauthorized()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files.byPath[name]
	if f == nil {
		return nil, notFound()
	}
	return f.file.Data, nil
}
