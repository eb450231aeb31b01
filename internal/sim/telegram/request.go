package telegram

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// request is a parsed call. All parameters are texts. JSON values other than strings are stored as JSON texts.
type request struct {
	method string // name of the method in lower case
	params map[string]string
	files  map[string]upload
}

// maxBody is the maximum size of a request: the largest file, and a megabyte for everything else.
const maxBody = MaxUpload + 1<<20

type upload struct {
	name, mime string
	data       []byte
}

func decodeRequest(r *http.Request, method string) (request, *Error) {
	req := request{method: strings.ToLower(method), params: map[string]string{}, files: map[string]upload{}}
	req.addValues(r.URL.Query())
	if r.Body == nil || r.Body == http.NoBody {
		return req, nil
	}
	if r.ContentLength > maxBody {
		return req, tooLarge()
	}
	kind, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := http.MaxBytesReader(nil, r.Body, maxBody)
	if err != nil || kind == "" {
		return req, drain(body)
	}
	switch kind {
	case "multipart/form-data":
		return req, req.readMultipart(body, attrs["boundary"])
	case "application/json":
		return req, req.readJSON(body)
	case "application/x-www-form-urlencoded":
		return req, req.readForm(body)
	}
	return req, drain(body)
}

func (q *request) addValues(values url.Values) {
	for name, list := range values {
		if len(list) > 0 {
			q.params[name] = list[0]
		}
	}
}

func (q *request) readMultipart(body io.Reader, boundary string) *Error {
	if boundary == "" {
		return badRequest("boundary not found")
	}
	reader := multipart.NewReader(body, boundary)
	for parts := 0; ; parts++ {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) && parts > 0 {
			return nil
		}
		if err != nil {
			return bodyError(err, "can't parse multipart body")
		}
		if failure := q.readPart(part); failure != nil {
			return failure
		}
	}
}

func (q *request) readPart(part *multipart.Part) *Error {
	data, err := io.ReadAll(part)
	if err != nil {
		return bodyError(err, "can't parse multipart body")
	}
	name := part.FormName()
	if file := part.FileName(); file != "" {
		if int64(len(data)) > MaxUpload {
			return tooLarge()
		}
		q.files[name] = upload{name: file, mime: part.Header.Get("Content-Type"), data: data}
		return nil
	}
	q.params[name] = string(data)
	return nil
}

func (q *request) readJSON(body io.Reader) *Error {
	data, err := io.ReadAll(body)
	if err != nil {
		return bodyError(err, "can't read request body")
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return badRequest("can't parse JSON request body")
	}
	for name, raw := range object {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &text) == nil:
			q.params[name] = text
		default:
			q.params[name] = string(raw)
		}
	}
	return nil
}

func (q *request) readForm(body io.Reader) *Error {
	data, err := io.ReadAll(body)
	if err != nil {
		return bodyError(err, "can't read request body")
	}
	values, err := url.ParseQuery(string(data))
	if err != nil {
		return badRequest("can't parse request body")
	}
	q.addValues(values)
	return nil
}

func drain(body io.Reader) *Error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return bodyError(err, "can't read request body")
	}
	return nil
}

func bodyError(err error, text string) *Error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return tooLarge()
	}
	return badRequest("%s", text)
}

// The following functions read parameters in the same way as the real server. An invalid number counts as zero. An
// unknown word for a boolean counts as false.

func (q *request) integer(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(q.params[name]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (q *request) boolean(name string) bool {
	switch strings.ToLower(q.params[name]) {
	case "true", "yes", "1":
		return true
	}
	return false
}

func (q *request) messageID(name string) MessageID { return MessageID(q.integer(name)) }
