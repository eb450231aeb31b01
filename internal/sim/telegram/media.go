package telegram

import (
	"bytes"
	"encoding/json"
	"image"
	_ "image/gif" // decoders for photos
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strconv"
	"strings"
)

type mediaKind string

const (
	photoKind    mediaKind = "photo"
	documentKind mediaKind = "document"
	voiceKind    mediaKind = "voice"
	audioKind    mediaKind = "audio"
	noteKind     mediaKind = "video_note"
)

func (k mediaKind) folder() string { return string(k) + "s" }

// maxPhoto is the maximum size of a photo that a bot uploads, in bytes.
const maxPhoto = 10 << 20

// Limits for photos: the sum of width and height in pixels, and the ratio of the sides.
const (
	maxSides = 10_000
	maxRatio = 20
)

// Media is a file in a message.
type Media struct {
	Kind   string // photo, document or voice
	FileID string
	Name   string
	MIME   string
	Size   int64
	width  int
	height int
	unique string
}

type wireFile struct {
	ID       string `json:"file_id"`
	Unique   string `json:"file_unique_id"`
	Name     string `json:"file_name,omitempty"`
	MIME     string `json:"mime_type,omitempty"`
	Size     int64  `json:"file_size,omitempty"`
	Duration *int   `json:"duration,omitempty"`
}

type photoSize struct {
	ID     string `json:"file_id"`
	Unique string `json:"file_unique_id"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Size   int64  `json:"file_size,omitempty"`
}

func (m *Media) wire(w *wireMessage) {
	switch mediaKind(m.Kind) {
	case photoKind:
		small := photoSize{m.FileID + "-s", m.unique + "-s", min(90, m.width), min(90, m.height), min(m.Size, 1000)}
		w.Photo = []photoSize{small, {m.FileID, m.unique, m.width, m.height, m.Size}}
	case voiceKind, audioKind, noteKind:
		seconds := 3
		f := &wireFile{ID: m.FileID, Unique: m.unique, Name: m.Name, MIME: m.MIME, Size: m.Size, Duration: &seconds}
		*map[mediaKind]**wireFile{voiceKind: &w.Voice, audioKind: &w.Audio,
			noteKind: &w.VideoNote}[mediaKind(m.Kind)] = f
	default:
		w.Document = &wireFile{ID: m.FileID, Unique: m.unique, Name: m.Name, MIME: m.MIME, Size: m.Size}
	}
}

// addMedia stores a file and returns its description. The caller holds mu.
func (s *Server) addMedia(kind mediaKind, f File) *Media {
	stored := s.files.add(s.nextSerial(), kind, f)
	m := &Media{Kind: string(kind), FileID: stored.id, unique: stored.unique, Name: f.Name, MIME: f.MIME,
		Size: f.size()}
	m.width, m.height = 1280, 960
	if c, _, err := image.DecodeConfig(bytes.NewReader(f.Data)); err == nil {
		m.width, m.height = c.Width, c.Height
	}
	return m
}

// SendPhoto sends a photo. data need not be a valid picture.
func (p *Person) SendPhoto(c *Chat, data []byte, opts ...SendOption) Message {
	return p.sendFile(c, photoKind, File{MIME: "image/jpeg", Data: data}, opts)
}

// SendDocument sends a file.
func (p *Person) SendDocument(c *Chat, f File, opts ...SendOption) Message {
	return p.sendFile(c, documentKind, f, opts)
}

// SendVoice sends a voice message.
func (p *Person) SendVoice(c *Chat, data []byte, opts ...SendOption) Message {
	return p.sendFile(c, voiceKind, File{MIME: "audio/ogg", Data: data}, opts)
}

// SendAudio sends music or a recording.
func (p *Person) SendAudio(c *Chat, f File, opts ...SendOption) Message {
	return p.sendFile(c, audioKind, f, opts)
}

// SendVideoNote sends a round video message.
func (p *Person) SendVideoNote(c *Chat, data []byte, opts ...SendOption) Message {
	return p.sendFile(c, noteKind, File{Data: data}, opts)
}

// SendPlace sends a location, with a title and an address that may be empty.
func (p *Person) SendPlace(c *Chat, latitude, longitude float64, title, address string, opts ...SendOption) Message {
	at := map[string]any{"latitude": latitude, "longitude": longitude}
	extra := map[string]any{"location": at}
	if title+address != "" {
		extra["venue"] = map[string]any{"location": at, "title": title, "address": address}
	}
	return p.post(c, message{Message: Message{Service: "place"}, extra: extra}, opts)
}

// SendContact sends the name and the phone number of a contact.
func (p *Person) SendContact(c *Chat, name, phone string, opts ...SendOption) Message {
	return p.post(c, message{Message: Message{Service: "contact"}, extra: map[string]any{
		"contact": map[string]any{"first_name": name, "phone_number": phone},
	}}, opts)
}

// SendSticker sends a sticker, which most bots do not support.
func (p *Person) SendSticker(c *Chat, emoji string, opts ...SendOption) Message {
	sticker := map[string]any{
		"file_id": "sticker-1", "file_unique_id": "sticker-1", "type": "regular", "width": 512, "height": 512,
		"is_animated": false, "is_video": false, "emoji": emoji,
	}
	return p.post(c, message{Message: Message{Service: "sticker " + emoji}, extra: map[string]any{"sticker": sticker}},
		opts)
}

func (p *Person) sendFile(c *Chat, kind mediaKind, f File, opts []SendOption) Message {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{}
	m.Media = s.addMedia(kind, f)
	return p.postLocked(c, m, opts).Message
}

// SendAlbum sends several files as one album, each in its own message. InTopic and ReplyTo apply to all files. The
// other options apply to the first file, which has the caption in Telegram's apps.
func (p *Person) SendAlbum(c *Chat, files []File, opts ...SendOption) []Message {
	s := p.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent []Message
	var place message
	for _, opt := range opts {
		opt(&place)
	}
	album := "album-" + strconv.FormatInt(s.nextSerial(), 10)
	for i, f := range files {
		m := message{Message: Message{Album: album, Topic: place.Topic, ReplyTo: place.ReplyTo}, joined: i > 0}
		kind := documentKind
		if strings.HasPrefix(f.MIME, "image/") {
			kind = photoKind
		}
		m.Media = s.addMedia(kind, f)
		if i > 0 {
			opts = nil
		}
		if last := place.lastCaption; last != "" && i == len(files)-1 {
			opts = []SendOption{WithCaption(last)}
		}
		sent = append(sent, p.postLocked(c, m, opts).Message)
	}
	return sent
}

func (s *Server) sendPhoto(q *request) (any, *Error) { return s.sendMedia(q, photoKind) }

func (s *Server) sendDocument(q *request) (any, *Error) { return s.sendMedia(q, documentKind) }

func (s *Server) sendMedia(q *request, kind mediaKind) (any, *Error) {
	media, err := s.inputFile(q, kind, q.params[string(kind)], string(kind))
	if err != nil {
		return nil, err
	}
	caption, err := q.formattedParam("caption", "caption_entities")
	if err != nil {
		return nil, err
	}
	o, err := s.outgoing(q)
	if err != nil {
		return nil, err
	}
	if Units(caption.text) > MaxCaption {
		return nil, badRequest("message caption is too long")
	}
	if err := o.chat.takesFiles(kind); err != nil {
		return nil, err
	}
	o.base.Media, o.base.Caption = media, true
	o.base.Text, o.base.Entities = caption.text, caption.entities
	return s.storeFromBot(o.chat, o.base).wire(), nil
}

// inputFile returns the file in a call. The value in the call is the file itself, the name of the field that contains
// the file, or the ID of a file on the server.
func (s *Server) inputFile(q *request, kind mediaKind, value, field string) (*Media, *Error) {
	up, ok := q.files[field]
	if name, attached := strings.CutPrefix(value, "attach://"); attached {
		up, ok = q.files[name]
	}
	if !ok {
		return s.knownFile(kind, value)
	}
	switch {
	case len(up.data) == 0:
		return nil, badRequest("file must be non-empty")
	case kind == photoKind && len(up.data) > maxPhoto:
		return nil, badRequest("file %q of size %d bytes is too big for a photo", up.name, len(up.data))
	}
	if kind == photoKind {
		switch c, _, err := image.DecodeConfig(bytes.NewReader(up.data)); {
		case err != nil:
			return nil, badRequest("IMAGE_PROCESS_FAILED")
		case c.Width+c.Height > maxSides || c.Width > maxRatio*c.Height || c.Height > maxRatio*c.Width:
			return nil, badRequest("PHOTO_INVALID_DIMENSIONS")
		}
	}
	return s.addMedia(kind, File{Name: up.name, MIME: up.mime, Data: up.data}), nil
}

func (s *Server) knownFile(kind mediaKind, id string) (*Media, *Error) {
	if id == "" {
		return nil, badRequest("there is no %s in the request", kind)
	}
	f := s.files.byID[id]
	if f == nil {
		return nil, badRequest("wrong file identifier/HTTP URL specified")
	}
	return s.addMedia(kind, f.file), nil
}

// inputMedia is an element of the parameter media of sendMediaGroup.
type inputMedia struct {
	Type     string          `json:"type"`
	Media    string          `json:"media"`
	Caption  string          `json:"caption"`
	Entities json.RawMessage `json:"caption_entities"`
}

func albumSize(q *request) int {
	var list []json.RawMessage
	if json.Unmarshal([]byte(q.params["media"]), &list) != nil {
		return 1
	}
	return max(1, len(list))
}

// ForbidFiles makes the chat reject all files that the bot sends.
func (c *Chat) ForbidFiles() {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	c.noFiles = true
}

// takesFiles returns an error if the bot may not send files of the given kind. The caller holds mu.
func (c *Chat) takesFiles(kind mediaKind) *Error {
	if !c.noFiles {
		return nil
	}
	return badRequest("not enough rights to send %ss to the chat", kind)
}

func (s *Server) sendMediaGroup(q *request) (any, *Error) {
	var list []inputMedia
	if json.Unmarshal([]byte(q.params["media"]), &list) != nil {
		return nil, badRequest("can't parse media JSON object")
	}
	if len(list) < 2 || len(list) > 10 {
		return nil, badRequest("there must be from 2 to 10 messages in the album")
	}
	if slices.ContainsFunc(list, func(m inputMedia) bool { return m.Type != list[0].Type }) {
		return nil, badRequest("document can't be mixed with other media types")
	}
	o, err := s.outgoing(q)
	if err != nil {
		return nil, err
	}
	if err := o.chat.takesFiles(mediaKind(list[0].Type)); err != nil {
		return nil, err
	}
	if q.params["reply_markup"] != "" {
		return nil, badRequest("reply markup can't be specified for an album")
	}
	parts := make([]message, 0, len(list))
	for _, one := range list {
		m, err := s.albumPart(q, o.base, one)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
	}
	album := "album-" + strconv.FormatInt(s.nextSerial(), 10)
	sent := make([]*wireMessage, 0, len(parts))
	for _, m := range parts {
		m.Album = album
		sent = append(sent, s.storeFromBot(o.chat, m).wire())
	}
	return sent, nil
}

func (s *Server) albumPart(q *request, base message, one inputMedia) (message, *Error) {
	if one.Type != string(photoKind) && one.Type != string(documentKind) {
		return base, badRequest("can't parse InputMedia: type must be photo or document")
	}
	media, err := s.inputFile(q, mediaKind(one.Type), one.Media, "")
	if err != nil {
		return base, err
	}
	entities, err := parseEntities(string(one.Entities))
	if err != nil {
		return base, err
	}
	caption, err := normalise(one.Caption, entities)
	if err != nil {
		return base, err
	}
	if Units(caption.text) > MaxCaption {
		return base, badRequest("message caption is too long")
	}
	base.Media, base.Caption, base.Keyboard = media, true, nil
	base.Text, base.Entities = caption.text, caption.entities
	return base, nil
}
