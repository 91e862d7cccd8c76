use tlog_tiles::*;
struct Dir;
impl TileReader for Dir {
    fn height(&self) -> u8 { 8 }
    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        Ok(tiles.iter().map(|t| {
            let p = t.path().replacen("tile/8/", "tile/", 1);
            std::fs::read(format!("files/{p}")).unwrap_or_else(|e| panic!("{p}: {e}"))
        }).collect())
    }
    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}
fn head(path: &str) -> Checkpoint {
    let note = std::fs::read(path).unwrap();
    let text = String::from_utf8(note).unwrap();
    let body = &text[..text.rfind("\n\n").unwrap() + 1];
    Checkpoint::from_bytes(body.as_bytes()).expect("checkpoint")
}
fn main() {
    let new = head("files/checkpoint");
    let old = head("old.txt");
    println!("rust: {} {} and {}", new.origin(), old.size(), new.size());
    let r = TileHashReader::new(new.size(), *new.hash(), &Dir);
    for i in [0u64, 255, 256, 65535, 65536, 65537, 69999] {
        let p = prove_record(new.size(), i, &r).expect("prove");
        check_record(&p, new.size(), *new.hash(), i, record_hash(format!("entry {i}").as_bytes())).expect("check");
    }
    let p = prove_tree(new.size(), old.size(), &r).expect("tree");
    check_tree(&p, new.size(), *new.hash(), old.size(), *old.hash()).expect("consistent");
    let ours: Vec<Hash> = std::fs::read_to_string("consistency.txt").unwrap().lines().map(|l| Hash::parse_hash(l).unwrap()).collect();
    check_tree(&ours, new.size(), *new.hash(), old.size(), *old.hash()).expect("our proof");
    println!("rust: 7 records and the consistency proven from our tiles; our own proof holds");
}
