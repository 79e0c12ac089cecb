mod generated;
mod replayed;
