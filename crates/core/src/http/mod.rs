//! What HTTP load generators print, in base units (seconds, bytes). A field that is not there is `None`;
//! one that cannot be read is an error with its line.

